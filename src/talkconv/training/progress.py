"""The progress of a run: its steps, its validations, and whether it is finished."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from talkconv.runs.checkpoints import STATE
from talkconv.training.training_settings import TrainingSettings

Metrics = Mapping[str, Any]


class Diverged(ArithmeticError):
    """The loss is infinite or not a number, so that training cannot go on."""


@dataclass(frozen=True)
class Progress:
    """The part of transformers' TrainerState that describes the progress of a run."""

    step: int = 0
    best_step: int | None = None
    # the metrics of each validation and its `step`, in the order of the validations
    validations: tuple[Metrics, ...] = ()

    @classmethod
    def of(cls, state: Any) -> "Progress":
        """Take the progress from a TrainerState."""
        validations = (each for each in state.log_history if "eval_loss" in each)
        return cls(state.global_step, state.best_global_step, tuple(validations))

    @classmethod
    def read(cls, checkpoint: Path) -> "Progress":
        """Read the progress from a checkpoint. It needs no transformers."""
        path = checkpoint / STATE
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            validations = (each for each in state["log_history"] if "eval_loss" in each)
            return cls(state["global_step"], state["best_global_step"], tuple(validations))
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} must hold the state of the training ({error}). Remove {checkpoint}, and "
                "training goes on from the checkpoint before it"
            ) from error

    @property
    def best(self) -> Metrics | None:
        """The metrics of the best validation, or None before the first one."""
        found = [each for each in self.validations if each["step"] == self.best_step]
        return found[-1] if found else None

    def since_best(self, by: str) -> int:
        """Count the validations after the best one.

        The count starts at the first score above 0, because a translation network has a BLEU of 0
        for a while although its loss falls.
        """
        best = self.best
        if best is None or (by != "loss" and best[f"eval_{by}"] <= 0):
            return 0
        return sum(each["step"] > best["step"] for each in self.validations)

    def out_of_patience(self, settings: TrainingSettings) -> bool:
        """Return whether `patience` validations in a row were no better than an earlier one."""
        if settings.patience is None:
            return False
        return self.since_best(settings.validate_by) >= settings.patience

    def finished(self, settings: TrainingSettings) -> bool:
        return self.step >= settings.max_steps or self.out_of_patience(settings)


def rank(metrics: Metrics | None, by: str) -> tuple[float, float]:
    """Return a key that is larger for a better validation. Equal scores are ranked by their loss.

    >>> worse, better = ({"eval_bleu": 0.0, "eval_loss": loss} for loss in (2.0, 1.5))
    >>> rank(worse, "bleu") < rank(better, "bleu")
    True
    """
    if metrics is None:
        return -math.inf, -math.inf
    loss = -metrics["eval_loss"]
    return (loss if by == "loss" else metrics[f"eval_{by}"]), loss
