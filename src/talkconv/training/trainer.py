"""RunTrainer: transformers' Trainer on our stream of batches, with checkpoints that are whole.

Nothing of a step hangs on the steps before it but the weights, the optimizer's state and the place
in the stream: chance is seeded anew with each batch. So a run that goes on is the run that never
stopped, to the bit on a CPU, and N processes do what one does with N times the accumulation.
"""

import math
import time
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim import Optimizer
from transformers import PrinterCallback, Trainer, TrainingArguments
from transformers.trainer_callback import TrainerState

from talkconv.data.batching import START, Batches, Position, Stream
from talkconv.models.base import TaLKConvPreTrainedModel
from talkconv.runs import checkpoints
from talkconv.runs.card import BEST, LAST
from talkconv.training.callback import Steps
from talkconv.training.interrupt import Interrupt
from talkconv.training.record import Record
from talkconv.training.schedule import make_optimizer, make_schedule
from talkconv.training.training_settings import TrainingSettings
from talkconv.training.validate import Validation


class Diverged(ArithmeticError):
    """The loss is no number any more."""


def out_of_patience(state: TrainerState, settings: TrainingSettings) -> bool:
    """Whether the last validations were all worse than one before."""
    since = [
        each
        for each in state.log_history
        if "eval_loss" in each and each["step"] > (state.best_global_step or 0)
    ]
    return settings.patience is not None and len(since) >= settings.patience


class RunTrainer(Trainer):
    """Trains one run; `go()` is the whole of it."""

    model: TaLKConvPreTrainedModel

    def __init__(
        self,
        model: TaLKConvPreTrainedModel,
        settings: TrainingSettings,
        batches: Batches,
        validation: Validation,
        run: Path,
        arguments: TrainingArguments,
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
        super().__init__(
            model=model,
            args=arguments,
            # the Trainer asks whether there are any; both come from the overrides below
            train_dataset=batches,
            eval_dataset=validation.batches,
            callbacks=[Steps(self, interrupt)],
        )
        self.remove_callback(PrinterCallback)

    def go(self, checkpoint: Path | None) -> TrainerState:
        """Train from the start, or on from a checkpoint; the state afterwards."""
        position = START if checkpoint is None else checkpoints.read_position(checkpoint)
        self._stream = self._batches.stream(
            position, process=self.args.process_index, processes=self.args.world_size
        )
        self.record.open(0 if checkpoint is None else checkpoints.step_of(checkpoint))
        self._since = time.monotonic()
        self.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        return self.state

    @property
    def position(self) -> Position:
        return self._stream.position

    @property
    def epoch(self) -> float:
        place = self.position
        return place.epoch + place.batch / len(self._batches.plan(place.epoch))

    # ---- what the Trainer asks for

    def get_train_dataloader(self) -> Any:
        return self._stream

    def create_optimizer(self, model: nn.Module | None = None) -> Optimizer:
        if self.optimizer is None:
            self.optimizer = make_optimizer((model or self.model).parameters(), self.settings)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        if self.lr_scheduler is None:
            self.lr_scheduler = make_schedule(self.create_optimizer(), self.settings)
            self._created_lr_scheduler = True
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

    def _init_training_state(self, max_steps: int, *args: Any) -> tuple[int, int]:
        places = super()._init_training_state(max_steps, *args)
        # a checkpoint remembers how often was logged and saved; the recipe may have changed it
        self.state.compute_steps(self.args, max_steps)
        return places

    # ---- what it tells

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" not in logs:
            # the summary at the end, which has nothing that the log has not
            return
        if not math.isfinite(logs["loss"]):
            raise Diverged(
                f"the loss is {logs['loss']} after {self.state.global_step} steps: start anew with "
                "a lower training.learning_rate, a longer training.warmup_steps, or training.clip"
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
        """Validation; a better network than all before becomes `best`."""
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
        best = self._is_best(values[self.settings.validate_by])
        step = self.state.global_step
        self.state.log_history.append({"step": step, **metrics})
        told = {"epoch": self.epoch, **{f"valid_{name}": value for name, value in values.items()}}
        self.record.validated(step, told, best=best)
        if best:
            self._save_network(self.run / BEST)
        if not best and out_of_patience(self.state, self.settings):
            self.record.say(f"no better network in {self.settings.patience} validations: done")
            self.control.should_save = self.control.should_training_stop = True
        # the time of a validation is not that of training
        self._since += time.monotonic() - started
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def _is_best(self, value: float) -> bool:
        best = self.state.best_metric
        if best is None:
            return True
        return value > best if self.args.greater_is_better else value < best

    # ---- what it writes and reads

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        final = checkpoints.checkpoint_path(self.run, self.state.global_step)
        self.record.doing("save")
        with self._whole(final) as unfinished:
            self.save_model(str(unfinished), _internal_call=True)
            self._save_optimizer_and_scheduler(str(unfinished))
            self._save_scaler(str(unfinished))
            if self.args.should_save:
                self.state.save_to_json(str(unfinished / checkpoints.STATE))
                checkpoints.write_position(unfinished, self.position)
        if self.args.should_save:
            checkpoints.publish(final, self.run / LAST)
            checkpoints.keep_last(self.run, self.settings.keep)

    def _save_network(self, folder: Path) -> None:
        with self._whole(folder) as unfinished:
            self.save_model(str(unfinished), _internal_call=True)

    def _whole(self, final: Path) -> Any:
        return checkpoints.whole(
            final, writes=self.args.should_save, wait=self.accelerator.wait_for_everyone
        )

    def _save(
        self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None
    ) -> None:
        """The network and its tokenizer; the Trainer's own would add a pickle of its arguments."""
        assert output_dir is not None
        network = self.accelerator.unwrap_model(self.model)
        network.save_pretrained(output_dir, state_dict=state_dict)
        self._validation.tokenizer.save_pretrained(output_dir)

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: nn.Module | None = None
    ) -> None:
        if self.is_fsdp_enabled:
            super()._load_from_checkpoint(resume_from_checkpoint, model)
            return
        weights = load_file(Path(resume_from_checkpoint) / "model.safetensors")
        result = self.model.load_state_dict(weights, strict=False)
        shared = set(self.model.all_tied_weights_keys)
        wrong = [*result.unexpected_keys, *sorted(set(result.missing_keys) - shared)]
        if wrong:
            raise ValueError(
                f"{resume_from_checkpoint} is of another network than this run's: one of them has "
                f"no {wrong[0]}. Remove the folder, or train in another --out"
            )

    def _save_rng_state(self, output_dir: str) -> None:
        """Chance is seeded anew with each batch."""

    def _load_rng_state(self, checkpoint: str | None) -> None:
        """Chance is seeded anew with each batch."""
