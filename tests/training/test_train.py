"""talkconv.train(): training as a Python call."""

import subprocess
import sys
from pathlib import Path

import pytest

import talkconv
from talkconv.runs.card import RunCard
from tests.training.cases import stop_at, weights, write_recipe

SHORT = dict(max_steps=4, validate_every=2, save_every=2)


@pytest.fixture
def recipe(tmp_path):
    return write_recipe(tmp_path / "mine.toml", training=SHORT)


def test_a_call_trains_and_returns_what_became_of_it(recipe, prepared, tmp_path, capsys):
    changes = {
        "training.betas": (0.9, 0.98),
        "training.log_every": 1,
        "model.normalize": False,
        "training.patience": None,
        "training.validate_by": "bleu",
        "generation.max_length": 5,
    }
    outcome = talkconv.train(recipe, changes, data=prepared(), out=str(tmp_path / "run"))
    assert "step 4/4" in capsys.readouterr().out
    assert outcome.finished
    assert (outcome.step, outcome.metric) == (4, "bleu")
    assert outcome.best_step in (2, 4)
    assert 0 <= outcome.best_score <= 100
    assert outcome.out == tmp_path / "run"
    assert weights(outcome.best)
    assert weights(outcome.last)
    assert outcome.recipe.training.betas == (0.9, 0.98)
    assert outcome.recipe.training.patience is None
    assert outcome.recipe.model["normalize"] is False


def test_folders_are_those_of_the_command_unless_given(recipe, prepared, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data/mine").symlink_to(prepared())
    outcome = talkconv.train("mine.toml", quiet=True)
    assert outcome.out == Path("runs/mine")
    assert RunCard.read(outcome.out).data == str(prepared())


def test_mistakes_are_raised(recipe, prepared, tmp_path):
    with pytest.raises(ValueError, match="no recipe is called 'tony'"):
        talkconv.train("tony")
    with pytest.raises(ValueError, match="did you mean 'max_steps'"):
        talkconv.train(recipe, {"training.maxsteps": 3})
    with pytest.raises(ValueError, match="must be a prepared folder"):
        talkconv.train(recipe, data=tmp_path / "nothing")


def test_what_was_stopped_goes_on(recipe, prepared, tmp_path, monkeypatch):
    stop_at(monkeypatch, 1)
    place = dict(data=prepared(), out=tmp_path / "run", quiet=True)
    outcome = talkconv.train(recipe, **place)
    assert not outcome.finished
    assert outcome.step == 1
    assert outcome.best_score is None
    monkeypatch.undo()
    with pytest.raises(ValueError, match="already holds a run"):
        talkconv.train(recipe, **place)
    assert talkconv.train(recipe, out=place["out"], resume=True, quiet=True).finished


def test_seeds_give_the_best_one(recipe, prepared, tmp_path, capsys):
    out = tmp_path / "runs"
    outcome = talkconv.train(recipe, data=prepared(), out=out, seeds=2, quiet=True)
    assert capsys.readouterr().out == ""
    assert outcome.out in (out / "seed-1", out / "seed-2")
    assert weights(out / "best").keys() == weights(outcome.best).keys()


def test_importing_talkconv_needs_nothing_of_it():
    names = "transformers", "datasets", "rich"
    code = f"import sys, talkconv; print([name for name in {names} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
