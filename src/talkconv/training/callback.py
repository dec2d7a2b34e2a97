"""What happens between the steps: the bar moves on, and training may end before its time."""

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from transformers import TrainerCallback, TrainingArguments
from transformers.trainer_callback import TrainerControl, TrainerState

from talkconv.training.interrupt import Interrupt

if TYPE_CHECKING:
    from talkconv.training.trainer import RunTrainer


class Steps(TrainerCallback):
    """The Trainer calls these."""

    def __init__(self, trainer: "RunTrainer", interrupt: Interrupt) -> None:
        self._trainer = trainer
        self._interrupt = interrupt

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        state.epoch = self._trainer.epoch
        self._trainer.record.step(state.global_step)
        if self._agreed():
            control.should_save = control.should_training_stop = True

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._trainer.record.step(state.global_step)

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._trainer.record.step(state.global_step)

    def _agreed(self) -> bool:
        """Whether any process was asked to stop: all must leave at the same step."""
        if not dist.is_initialized():
            return self._interrupt.requested
        asked = torch.tensor(float(self._interrupt.requested), device=self._trainer.args.device)
        dist.all_reduce(asked, dist.ReduceOp.MAX)
        return bool(asked)
