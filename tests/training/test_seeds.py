import json

import pytest
from safetensors.torch import load_file

from talkconv.files import unfinished_name
from talkconv.runs.card import RunCard
from talkconv.runs.open_run import open_run
from talkconv.training.progress import Progress
from talkconv.training.recipe import read_recipe
from talkconv.training.request import Outcome, Request
from talkconv.training.seeds import REPORT, choose, train_seeds
from tests.training.cases import cli, stop_at, write_recipe


@pytest.fixture
def request_(tmp_path, prepared):
    path = write_recipe(tmp_path / "tiny.toml", training=dict(max_steps=4, validate_every=2))
    return Request(str(path), data=prepared(), out=tmp_path / "runs")


def test_all_seeds_are_trained_and_the_best_by_validation_is_chosen(request_, silence):
    assert train_seeds(request_, 3, silence).finished
    report = json.loads((request_.out / REPORT).read_text())
    assert [line["seed"] for line in report["seeds"]] == [1, 2, 3]
    scores = {line["seed"]: line["score"] for line in report["seeds"]}
    assert len(set(scores.values())) == 3
    assert report["best"] == min(scores, key=scores.get)
    chosen = request_.out / f"seed-{report['best']}"
    first, second = (
        load_file(run / "best" / "model.safetensors") for run in (request_.out, chosen)
    )
    assert all(first[name].equal(second[name]) for name in first)
    assert RunCard.read(request_.out) == RunCard.read(chosen)
    assert open_run(request_.out).model.config.dim == 8


def test_seeds_go_on_where_they_were_stopped(request_, monkeypatch):
    words = [request_.recipe, "--data", request_.data, "--out", request_.out, "--seeds", 2]
    stop_at(monkeypatch, 3)
    code, said = cli(*words)
    assert code == 130
    assert "seed 1 of 2" in said
    assert not (request_.out / "seed-2").exists()
    assert f"--out {request_.out} --seeds 2 --resume" in said
    monkeypatch.undo()
    code, said = cli(*words)
    assert code == 1
    assert "already holds a run of recipe tiny (at step 3): continue it with --resume" in said
    code, said = cli(*words, "--resume")
    assert code == 0
    assert "from step 3 to 4" in said
    assert "from step 0 to 4" in said
    assert "validation loss" in said


def test_one_seed_is_enough_and_what_a_killed_process_left_is_removed(request_, silence):
    left = unfinished_name(request_.out / "averaged")
    left.mkdir(parents=True)
    assert train_seeds(request_, 1, silence).finished
    assert json.loads((request_.out / REPORT).read_text())["best"] == 1
    assert not left.exists()


def test_there_must_be_a_seed(request_, silence):
    with pytest.raises(ValueError, match="--seeds must be at least 1, got 0"):
        train_seeds(request_, 0, silence)


def test_of_equal_scores_the_lower_loss_is_chosen(request_, tmp_path):
    recipe = read_recipe(request_.recipe, ["training.validate_by=bleu"])

    def outcome(bleu, loss):
        metrics = {"step": 2, "eval_loss": loss, "eval_bleu": bleu}
        return Outcome(tmp_path, recipe, Progress(2, 2, (metrics,)))

    outcomes = [outcome(0.0, 3.0), outcome(0.0, 2.0), outcome(0.0, 2.5)]
    assert choose(outcomes) is outcomes[1]
    assert choose([*outcomes, outcome(0.1, 9.0)]).best_score == 0.1
