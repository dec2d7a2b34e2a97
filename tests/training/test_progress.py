"""Tests which validation is the best, and when training ends without a better one."""

import json

import pytest

from talkconv.runs.checkpoints import STATE
from talkconv.training.progress import Progress, rank
from talkconv.training.training_settings import TrainingSettings


def progress_after(*scores, by="bleu"):
    """Return the progress after validations with (score, loss) at steps 1, 2, ..."""
    progress = Progress()
    for step, (score, loss) in enumerate(scores, start=1):
        metrics = {"step": step, "eval_loss": loss, f"eval_{by}": score}
        better = rank(metrics, by) > rank(progress.best, by)
        best = step if better else progress.best_step
        progress = Progress(step, best, (*progress.validations, metrics))
    return progress


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
    assert progress_after(*scores).best["step"] == best


def test_the_lowest_loss_is_the_best_by_loss():
    assert progress_after((3, 3), (2, 2), (4, 4), by="loss").best_step == 2


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
    assert progress_after(*scores).since_best("bleu") == since


def test_a_loss_counts_from_the_start():
    assert progress_after((1, 1), (2, 2), by="loss").since_best("loss") == 1


@pytest.mark.parametrize(("patience", "ends"), [(None, False), (2, True), (3, False)])
def test_patience_is_a_number_of_validations(patience, ends):
    settings = TrainingSettings(patience=patience, validate_by="bleu")
    progress = progress_after((2, 5), (1, 5), (1, 5))
    assert progress.out_of_patience(settings) is ends
    assert progress.finished(settings) is ends
    assert Progress(50_000).finished(settings)


def test_a_checkpoint_says_how_far_the_run_was(tmp_path):
    history = [{"step": 2, "loss": 1.0}, {"step": 2, "eval_loss": 1.5}]
    state = {"global_step": 3, "best_global_step": 2, "best_metric": 1.5, "log_history": history}
    (tmp_path / STATE).write_text(json.dumps(state))
    assert Progress.read(tmp_path) == Progress(3, 2, ({"step": 2, "eval_loss": 1.5},))


@pytest.mark.parametrize("text", [None, "{", "[]", '{"global_step": 3}'])
def test_a_broken_state_is_named_with_the_cure(tmp_path, text):
    if text is not None:
        (tmp_path / STATE).write_text(text)
    with pytest.raises(ValueError, match=r"trainer_state.json must hold the state .* Remove "):
        Progress.read(tmp_path)
