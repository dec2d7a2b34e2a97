"""The callbacks that the Trainer calls: for progress, Ctrl-C, checkpoints and early stopping."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import EarlyStoppingCallback, TrainerCallback, TrainingArguments
from transformers.trainer_callback import TrainerControl, TrainerState

from talkconv.data.position import Position
from talkconv.files import write_text
from talkconv.runs import checkpoints
from talkconv.runs.card import LAST
from talkconv.training.collectives import any_process, wait_for_all
from talkconv.training.interrupt import Interrupt
from talkconv.training.progress import Progress
from talkconv.training.record import Record
from talkconv.training.training_settings import TrainingSettings


class ShowProgress(TrainerCallback):
    """Updates the progress bar, and sets the Trainer's epoch to that of the stream of batches."""

    def __init__(self, record: Record, epoch: Callable[[], float]) -> None:
        self._record = record
        self._epoch = epoch

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        state.epoch = self._epoch()
        self._record.step(state.global_step)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._record.step(state.global_step)

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._record.step(state.global_step)


class StopOnInterrupt(TrainerCallback):
    """Saves and ends training after the step in which Ctrl-C was pressed."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # all processes must stop at the same step
        if any_process(self._interrupt.requested, args.device):
            control.should_save = control.should_training_stop = True


class CompleteCheckpoints(TrainerCallback):
    """Completes each checkpoint that the Trainer has written, and moves it to its place."""

    def __init__(self, run: Path, keep: int, position: Callable[[], Position]) -> None:
        self._run = run
        self._keep = keep
        self._position = position

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # A checkpoint of an older version contains the intervals that the run was started with.
        state.compute_steps(args, state.max_steps)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # The Trainer has noted a path in the staging folder, from which the checkpoint is moved.
        state.best_model_checkpoint = None
        wait_for_all()
        if args.should_save:
            written = checkpoints.staged_checkpoint(self._run, state.global_step)
            # Random numbers are seeded for each batch, so their state is not needed.
            for file in written.glob("rng_state*.pth"):
                file.unlink()
            _forget_intervals(written / checkpoints.STATE)
            checkpoints.write_position(written, self._position())
            final = checkpoints.finish_checkpoint(self._run, state.global_step)
            checkpoints.publish(final, self._run / LAST)
            checkpoints.keep_last(self._run, self._keep)
        wait_for_all()


class StopWithoutImprovement(EarlyStoppingCallback):
    """Ends training after `patience` validations without a better result.

    The count comes from the validations themselves, so that it is right after a resume and after
    a change of `patience`.
    """

    def __init__(self, settings: TrainingSettings, record: Record) -> None:
        assert settings.patience is not None
        super().__init__(early_stopping_patience=settings.patience)
        self._settings = settings
        self._record = record

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # The Trainer expects an entry here when it saves, but a run that began without `patience`
        # has none.
        entries: Any = state.stateful_callbacks
        entries.setdefault(type(self).__name__, self.state())

    def check_metric_value(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metric_value: float,
    ) -> None:
        since = Progress.of(state).since_best(self._settings.validate_by)
        self.early_stopping_patience_counter = since

    def on_evaluate(  # type: ignore[override]
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: dict[str, float],
        **kwargs: Any,
    ) -> None:
        super().on_evaluate(args, state, control, metrics, **kwargs)
        if Progress.of(state).out_of_patience(self._settings):
            self._record.say(f"no better network in {self._settings.patience} validations: done")
            control.should_save = True


def _forget_intervals(path: Path) -> None:
    """Remove the intervals from a checkpoint's state. A resumed run takes them from the recipe."""
    state = json.loads(path.read_text(encoding="utf-8"))
    state |= dict.fromkeys(("logging_steps", "eval_steps", "save_steps", "best_model_checkpoint"))
    write_text(path, json.dumps(state, indent=2, sort_keys=True) + "\n")
