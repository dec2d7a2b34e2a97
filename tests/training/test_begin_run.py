"""Tests what may start or continue in a folder, and the errors for everything else."""

import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from talkconv.data.prepared import open_prepared
from talkconv.runs.card import RunCard
from talkconv.training.begin_run import card_of, plan_run
from talkconv.training.log_file import read_log
from talkconv.training.recipe import read_recipe, read_toml
from talkconv.training.request import Request
from tests.training.cases import go_on, run, same, weights, write_recipe


def test_a_finished_run_is_left_alone_or_given_more_steps(request_for):
    request = request_for(training=dict(max_steps=3))
    run(request)
    before = weights(request.out / "last")
    again = go_on(request)
    said = io.StringIO()
    assert run(again, Console(file=said, width=200)).finished
    assert "is finished, at step 3" in said.getvalue()
    assert same(before, weights(request.out / "last"))
    more = go_on(request, "training.max_steps=5")
    assert run(more).step == 5
    assert [line["step"] for line in read_log(request.out) if "loss" in line] == [2, 4]


def test_a_vocabulary_of_another_run_is_refused(request_for, tmp_path):
    request = request_for(training=dict(max_steps=2))
    run(request)
    other = shutil.copytree(request.data, tmp_path / "other")
    card = json.loads((other / "data.json").read_text())
    (other / "data.json").write_text(json.dumps({**card, "vocabulary": "another"}))
    with pytest.raises(
        ValueError, match=r"another vocabulary than that of .*/other: give the data of the run"
    ):
        run(Request(request.recipe, data=other, out=request.out, resume=True))


def test_checkpoints_of_another_network_are_refused(request_for):
    small = request_for(out="small", training=dict(max_steps=2))
    run(small)
    large = request_for(out="large", training=dict(max_steps=2), model=dict(dim=16))
    run(large)
    shutil.rmtree(small.out / "checkpoints")
    shutil.copytree(large.out / "checkpoints", small.out / "checkpoints")
    write_recipe(Path(small.recipe), training=dict(max_steps=2))
    again = Request(small.recipe, data=small.data, out=small.out, resume=True)
    with pytest.raises(
        ValueError, match=r"belongs to another network: it has dim = 16, but this run has 8\. Rem"
    ):
        run(again)


@pytest.mark.parametrize("name", ["optimizer.pt", "model.safetensors", "position.json"])
def test_a_checkpoint_that_somebody_emptied_is_refused(request_for, name):
    request = request_for(training=dict(max_steps=2))
    run(request)
    (request.out / "checkpoints" / "checkpoint-2" / name).unlink()
    again = go_on(request)
    with pytest.raises(ValueError, match=f"checkpoint-2 has no {name}: remove the folder"):
        run(again)


def test_what_was_tuned_stays(request_for):
    request = request_for(training=dict(max_steps=2))
    run(request)
    card = RunCard.read(request.out)
    tuned = replace(card, model="last", generation=replace(card.generation, length_penalty=0.3))
    tuned.write(request.out)
    run(go_on(request))
    assert RunCard.read(request.out) == tuned
    # more steps make another network, but it still writes best with that penalty
    run(go_on(request, "training.max_steps=3"))
    assert RunCard.read(request.out) == replace(tuned, model="best")
    run(go_on(request, "training.max_steps=4", "generation.length_penalty=2"))
    assert RunCard.read(request.out).generation.length_penalty == 2


def test_a_finished_run_takes_other_settings_of_generation(request_for):
    request = request_for(training=dict(max_steps=2))
    run(request)
    replace(RunCard.read(request.out), model="last").write(request.out)
    again = go_on(request, "generation.num_beams=7")
    assert run(again).step == 2
    card = RunCard.read(request.out)
    assert (card.generation.num_beams, card.model) == (7, "last")
    assert read_toml(request.out / "recipe.toml")["generation"]["num_beams"] == 7
    for network in ("best", "last"):
        config = json.loads((request.out / network / "generation_config.json").read_text())
        assert config["num_beams"] == 7
    # they stay when the run is asked again, and the checkpoint is as it was
    run(go_on(request))
    assert RunCard.read(request.out) == card


def test_sources_are_cut_as_in_training(request_for):
    prepared = open_prepared(request_for().data)
    card = card_of(read_recipe("cnn_dailymail_standard"), prepared)
    assert card.generation.max_source_tokens == 400
    unlimited = card_of(read_recipe("iwslt14_de_en"), prepared)
    assert unlimited.generation.max_source_tokens == 1024
    assert card.generation.reading_at_most(10**6) == card.generation


def test_a_missing_last_network_is_written_again_when_a_run_goes_on(request_for):
    request = request_for(training=dict(max_steps=3))
    run(request)
    shutil.rmtree(request.out / "last")
    run(go_on(request))
    assert same(weights(request.out / "last"), weights(request.out / "checkpoints/checkpoint-3"))


def test_a_run_killed_before_its_card_was_written_starts_again(request_for):
    request = request_for(training=dict(max_steps=2))
    run(request)
    card, recipe = request.out / "run.json", (request.out / "recipe.toml").read_text()
    shutil.rmtree(request.out)
    request.out.mkdir()
    (request.out / "recipe.toml").write_text(recipe)
    run(request)
    assert card.exists()


def test_a_restart_of_the_same_torchrun_goes_on_by_itself(request_for, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "mine")
    request = request_for(training=dict(max_steps=2))
    run(request)
    assert plan_run(request).progress.step == 2
    # another start must not go on with a run by mistake
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "other")
    with pytest.raises(ValueError, match="already holds a run"):
        plan_run(request)
    # the other processes follow the first one, which is the one to refuse
    monkeypatch.setenv("RANK", "1")
    assert plan_run(request).progress.step == 2


def test_a_torchrun_without_a_name_is_known_by_its_process(request_for, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    request = request_for(training=dict(max_steps=2))
    run(request)
    assert plan_run(request).progress.step == 2
    monkeypatch.setattr("talkconv.training.processes.os.getppid", os.getpid)
    with pytest.raises(ValueError, match="already holds a run"):
        plan_run(request)


def test_a_run_that_goes_on_belongs_to_the_torchrun_that_goes_on(request_for, monkeypatch):
    request = request_for(training=dict(max_steps=2))
    run(request)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "second")
    with pytest.raises(ValueError, match="already holds a run"):
        plan_run(request)
    run(go_on(request, "training.max_steps=3"))
    assert plan_run(request).progress.step == 3
