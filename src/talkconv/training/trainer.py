"""RunTrainer: transformers' Trainer with our stream of batches and with complete checkpoints.

A step depends only on the weights, the optimizer's state and the position in the stream of batches,
because random numbers are seeded for each batch. A resumed run therefore gives the same results as
a run that was never stopped, bit for bit on a CPU. N processes give the same results as one process
with N times the accumulation.
"""

import math
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor, nn
from torch.optim import Optimizer
from transformers import PrinterCallback, Trainer, TrainerCallback

from talkconv.data.batching import Batches, Stream
from talkconv.data.position import START, Position
from talkconv.models.generative import TaLKConvGenerativeModel
from talkconv.runs import checkpoints
from talkconv.runs.card import BEST, RunCard
from talkconv.runs.model_card import write_scores
from talkconv.training.arguments import RunArguments
from talkconv.training.callbacks import (
    CompleteCheckpoints,
    ShowProgress,
    StopOnInterrupt,
    StopWithoutImprovement,
)
from talkconv.training.collectives import wait_for_all
from talkconv.training.interrupt import Interrupt
from talkconv.training.progress import Diverged, Progress, rank
from talkconv.training.record import Record
from talkconv.training.schedule import make_optimizer, make_schedule
from talkconv.training.training_settings import TrainingSettings
from talkconv.training.validate import Validation


class RunTrainer(Trainer):
    """Trains one run. Call go() to do so."""

    model: TaLKConvGenerativeModel

    def __init__(
        self,
        model: TaLKConvGenerativeModel,
        settings: TrainingSettings,
        batches: Batches,
        validation: Validation,
        run: Path,
        arguments: RunArguments,
        record: Record,
        interrupt: Interrupt,
    ) -> None:
        self.settings = settings
        self.run = run
        self.record = record
        self._batches = batches
        self._validation = validation
        self._stream: Stream
        self._tokens: list[Tensor | int] = []
        self._since = 0.0
        callbacks: list[TrainerCallback] = [
            ShowProgress(record, lambda: self.epoch),
            StopOnInterrupt(interrupt),
            CompleteCheckpoints(run, settings.keep, lambda: self.position),
        ]
        if settings.patience is not None:
            callbacks.append(StopWithoutImprovement(settings, record))
        super().__init__(
            model=model,
            args=arguments,
            # The Trainer checks that these are not None. The methods below supply the batches.
            train_dataset=batches,
            eval_dataset=validation.batches,
            callbacks=callbacks,
        )
        self.remove_callback(PrinterCallback)

    def go(self, checkpoint: Path | None) -> Progress:
        """Train from the start or from a checkpoint, and return the progress."""
        position = START if checkpoint is None else checkpoints.read_position(checkpoint)
        self._stream = self._batches.stream(
            position, process=self.args.process_index, processes=self.args.world_size
        )
        self.record.open(0 if checkpoint is None else checkpoints.step_of(checkpoint))
        self._since = time.monotonic()
        self.model.register_load_state_dict_post_hook(partial(_check_weights, checkpoint))
        with checkpoints.staging(self.run, writes=self.args.should_save):
            self.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        return Progress.of(self.state)

    @property
    def position(self) -> Position:
        return self._stream.position

    @property
    def epoch(self) -> float:
        place = self.position
        return place.epoch + place.batch / len(self._batches.plan(place.epoch))

    def get_train_dataloader(self) -> Any:
        return self._stream

    def create_optimizer(self, model: nn.Module | None = None) -> Optimizer:
        if self.optimizer is None:
            self.optimizer = make_optimizer((model or self.model).parameters(), self.settings)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        if self.lr_scheduler is None:
            self.lr_scheduler = make_schedule(self.create_optimizer(), self.settings)
        return self.lr_scheduler

    def get_batch_samples(self, *args: Any) -> tuple[list[Any], Any]:
        batches, tokens = super().get_batch_samples(*args)
        assert tokens is not None
        self._tokens.append(tokens)
        return batches, tokens

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None
    ) -> Tensor:
        inputs = dict(inputs)
        torch.manual_seed(inputs.pop("seed"))
        return super().training_step(model, inputs, num_items_in_batch)

    def floating_point_ops(self, inputs: dict[str, Any]) -> int:
        return 0

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" not in logs:
            # the summary at the end has nothing that is not in the log already
            return
        if not math.isfinite(logs["loss"]):
            raise Diverged(
                f"the loss is {logs['loss']} after {self.state.global_step} steps: start again "
                "with a lower training.learning_rate, more training.warmup_steps, or training.clip"
            )
        self.control.should_log = False
        now = time.monotonic()
        tokens = sum(int(number) for number in self._tokens)
        speed = tokens / max(now - self._since, 1e-9)
        self._tokens, self._since = [], now
        self.record.trained(
            self.state.global_step, {"epoch": self.epoch, **logs, "tokens_per_second": speed}
        )

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Validate the network. If it is better than all before, it becomes `best`."""
        started = time.monotonic()
        self.model.eval()
        with torch.no_grad():
            values = self._validation(
                self.model,
                sum_all=lambda tensor: self.accelerator.reduce(tensor, "sum"),
                gather=gather_object,
                process=self.args.process_index,
                processes=self.args.world_size,
                tell=self.record.doing,
            )
        metrics = {f"eval_{name}": value for name, value in values.items()}
        best = self._note_validation(metrics)
        told = {"epoch": self.epoch, **{f"valid_{name}": value for name, value in values.items()}}
        self.record.validated(self.state.global_step, told, best=best)
        if best:
            folder = self.run / BEST
            with checkpoints.whole(folder, writes=self.args.should_save, wait=wait_for_all) as new:
                self.save_model(str(new))
                if self.args.should_save:
                    write_scores(new, RunCard.read(self.run), "valid", values)
        # the time of a validation does not count for the training speed
        self._since += time.monotonic() - started
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def _note_validation(self, metrics: dict[str, float]) -> bool:
        """Add a validation to the state, and return whether it is better than all before."""
        state, by = self.state, self.settings.validate_by
        best = rank(metrics, by) > rank(Progress.of(state).best, by)
        state.log_history.append({"step": state.global_step, **metrics})
        if best:
            state.best_metric = metrics[f"eval_{by}"]
            state.best_global_step = state.global_step
        return best

    def save_model(self, output_dir: str | None = None, *args: Any, **kwargs: Any) -> None:
        """Save the network and its tokenizer, without the Trainer's pickle of its arguments."""
        assert output_dir is not None
        self.record.doing("save")
        sharded = self.accelerator.get_state_dict(self.model) if self.is_fsdp_enabled else None
        if self.args.should_save:
            network = self.accelerator.unwrap_model(self.model)
            network.save_pretrained(output_dir, state_dict=sharded)
            self._validation.tokenizer.save_pretrained(output_dir)


def _check_weights(checkpoint: Path | None, model: TaLKConvGenerativeModel, loaded: Any) -> None:
    """Raise an error for the weights of another network. The Trainer would only warn.

    Tied weights are stored once, so their other names are missing in the file.
    """
    shared = set(model.all_tied_weights_keys)
    loaded.missing_keys[:] = [name for name in loaded.missing_keys if name not in shared]
    wrong = [*loaded.unexpected_keys, *loaded.missing_keys]
    if wrong:
        raise ValueError(
            f"{checkpoint} belongs to another network than this run: one of them has no "
            f"{wrong[0]}. Remove the folder, or train in another --out"
        )
