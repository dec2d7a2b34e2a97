import math

import pytest

from talkconv.report.kept_run import KeptRun, Point, read_kept
from tests.report.cases import SCORE, kept


def test_a_curve_is_the_validations_over_tokens():
    assert kept(value=40.0).curve() == [Point(1e6, 20.0), Point(2.5e6, 40.0)]
    assert kept().tokens == 2.5e6


def test_a_loss_becomes_a_perplexity():
    run = kept(recipe={"training": {"validate_by": "loss"}})
    assert run.metric == "perplexity"
    assert [point.value for point in run.curve()] == pytest.approx([math.exp(3), math.exp(2)])


def test_without_the_data_tokens_are_unknown():
    run = kept(summary={"step": 20, "max_steps": 20, "finished": True, "tokens_per_epoch": None})
    assert run.tokens is None
    assert run.curve() == []


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        (dict(summary={}), "not trained yet"),
        (dict(summary={"step": 1500, "max_steps": 4000}), "at step 1,500 of 4,000"),
        (dict(summary={"step": 5, "max_steps": 9, "failure": "diverges"}), "diverges"),
        (dict(evaluations={}), "trained, not evaluated yet"),
        ({}, "trained"),
    ],
)
def test_the_status_tells_how_far_a_run_is(changes, status):
    assert kept(**changes).status == status


def test_scores_of_an_unfinished_run_do_not_count():
    assert kept().score("test", SCORE)["value"] == 40.0
    assert kept().score("test", "another") is None
    assert kept().score("valid", SCORE) is None
    assert kept(summary={"step": 5, "max_steps": 9}).score("test", SCORE) is None


def test_a_missing_folder_is_a_run_that_was_not_trained(tmp_path):
    assert read_kept(tmp_path / "gone") == KeptRun("gone")
