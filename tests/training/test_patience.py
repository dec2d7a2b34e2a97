"""Which validation is the best, and when training ends because none was better since."""

from dataclasses import dataclass, field

import pytest

from talkconv.training.patience import (
    best_validation,
    out_of_patience,
    rank,
    validations_since_best,
)
from talkconv.training.training_settings import TrainingSettings


@dataclass
class State:
    best_global_step: int | None = None
    log_history: list = field(default_factory=list)


def state_after(*scores, by="bleu"):
    """Return the state after validations with (score, loss) at steps 1, 2, ..."""
    state = State()
    for step, (score, loss) in enumerate(scores, start=1):
        metrics = {"step": step, "eval_loss": loss, f"eval_{by}": score}
        if rank(metrics, by) > rank(best_validation(state), by):
            state.best_global_step = step
        state.log_history += [{"step": step, "loss": 1.0}, metrics]
    return state


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([(1, 5), (2, 6), (1, 4)], 2),
        # equal scores are ranked by their loss
        ([(0, 5), (0, 4), (0, 4.5)], 2),
        ([(3, 5), (3, 5)], 1),
        ([(0, 5), (0.1, 9)], 2),
    ],
)
def test_the_best_is_the_highest_score_and_of_equals_the_lowest_loss(scores, best):
    assert state_after(*scores).best_global_step == best


def test_the_lowest_loss_is_the_best_by_loss():
    assert state_after((3, 3), (2, 2), (4, 4), by="loss").best_global_step == 2


@pytest.mark.parametrize(
    ("scores", "since"),
    [
        ([], 0),
        ([(0, 5)], 0),
        # a score of 0 says nothing yet, whatever the loss does
        ([(0, 5), (0, 6), (0, 7)], 0),
        ([(0, 5), (1, 6), (0, 7)], 1),
        ([(2, 5), (1, 4), (1, 4)], 2),
    ],
)
def test_validations_count_from_the_first_score_above_0(scores, since):
    assert validations_since_best(state_after(*scores), "bleu") == since


def test_a_loss_counts_from_the_start():
    assert validations_since_best(state_after((1, 1), (2, 2), by="loss"), "loss") == 1


@pytest.mark.parametrize(("patience", "ends"), [(None, False), (2, True), (3, False)])
def test_patience_is_a_number_of_validations(patience, ends):
    settings = TrainingSettings(patience=patience, validate_by="bleu")
    assert out_of_patience(state_after((2, 5), (1, 5), (1, 5)), settings) is ends
