"""The record of a run while it trains: one progress bar, log.jsonl and TensorBoard."""

import time
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from torch.utils.tensorboard import SummaryWriter

from talkconv.messages import can_redraw
from talkconv.training.log_file import append_to_log, forget_after

TENSORBOARD = "tensorboard"


class Record:
    """Shows and writes the progress of one run.

    Only the first process of a run shows and writes anything; the others have `folder=None`. When
    it is opened at a step, it removes what a killed process wrote about later steps.
    """

    def __init__(self, folder: Path | None, console: Console, max_steps: int) -> None:
        self._folder = folder
        self._console = console
        self._max_steps = max_steps
        self._progress: Progress | None = None
        self._writer: Any = None
        self._started = time.monotonic()
        self._first_step = 0

    def open(self, step: int) -> None:
        self._started, self._first_step = time.monotonic(), step
        if self._folder is None:
            return
        forget_after(self._folder, step)
        self._writer = SummaryWriter(str(self._folder / TENSORBOARD), purge_step=step + 1)
        if can_redraw(self._console):
            self._progress = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._progress.start()
            self._task = self._progress.add_task(
                "train", total=self._max_steps, completed=step, note=""
            )

    def __enter__(self) -> "Record":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
        if self._writer is not None:
            self._writer.close()

    def step(self, step: int) -> None:
        if self._progress is not None:
            self._progress.update(self._task, completed=step, description="train")

    def doing(self, what: str) -> None:
        """Set the text of the progress bar while something other than training happens."""
        if self._progress is not None:
            self._progress.update(self._task, description=what)

    def say(self, text: str) -> None:
        if self._folder is not None:
            self._console.print(text, highlight=False, soft_wrap=True)

    def trained(self, step: int, values: dict[str, float]) -> None:
        """Write a line about the last training steps to the log."""
        note = f"loss {values['loss']:.3f}  {values['tokens_per_second']:,.0f} tokens/s"
        if self._progress is not None:
            self._progress.update(self._task, note=note)
        else:
            self.say(f"step {step}/{self._max_steps}  {note}  {self._left(step)} left")
        self._write(step, values)

    def validated(self, step: int, values: dict[str, float], *, best: bool) -> None:
        """Write a line about a validation to the log."""
        said = "  ".join(f"{name} {value:.4g}" for name, value in values.items() if name != "epoch")
        self.say(f"step {step}/{self._max_steps}  {said}{'  (best)' if best else ''}")
        self._write(step, values)

    def _write(self, step: int, values: dict[str, float]) -> None:
        if self._folder is None:
            return
        append_to_log(self._folder, step, values)
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def _left(self, step: int) -> str:
        took = (time.monotonic() - self._started) / max(step - self._first_step, 1)
        minutes, seconds = divmod(round(took * (self._max_steps - step)), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
