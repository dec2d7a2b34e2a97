"""Which validation is the best one, and when training ends because none was better since."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from talkconv.training.training_settings import TrainingSettings


class State(Protocol):
    """The part of transformers' TrainerState that counts here."""

    @property
    def best_global_step(self) -> int | None: ...

    @property
    def log_history(self) -> Sequence[Mapping[str, Any]]: ...


def validations(state: State) -> list[Mapping[str, Any]]:
    """Return the metrics of all validations, each with its `step`, in their order."""
    return [each for each in state.log_history if "eval_loss" in each]


def best_validation(state: State) -> Mapping[str, Any] | None:
    """Return the metrics of the best validation, or None before the first one."""
    found = [each for each in validations(state) if each["step"] == state.best_global_step]
    return found[-1] if found else None


def rank(metrics: Mapping[str, Any] | None, by: str) -> tuple[float, float]:
    """Return a key that is larger for a better validation; equal scores are ranked by their loss.

    >>> rank({"eval_loss": 2.0, "eval_bleu": 0.0}, "bleu") < rank(
    ...     {"eval_loss": 1.5, "eval_bleu": 0.0}, "bleu"
    ... )
    True
    """
    if metrics is None:
        return -math.inf, -math.inf
    loss = -metrics["eval_loss"]
    return (loss if by == "loss" else metrics[f"eval_{by}"]), loss


def validations_since_best(state: State, by: str) -> int:
    """Count the validations after the best one.

    They count from the first score above 0: a translation network has a BLEU of 0 for a while, and
    its loss falls all the same.
    """
    best = best_validation(state)
    if best is None or (by != "loss" and best[f"eval_{by}"] <= 0):
        return 0
    return sum(each["step"] > best["step"] for each in validations(state))


def out_of_patience(state: State, settings: TrainingSettings) -> bool:
    """Tell whether so many validations in a row were no better than an earlier one."""
    if settings.patience is None:
        return False
    return validations_since_best(state, settings.validate_by) >= settings.patience
