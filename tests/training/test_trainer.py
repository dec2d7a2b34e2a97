"""Tests what a run learns, and that interruptions do not change it."""

import io
import json
import logging
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file, save_file

from talkconv.runs import checkpoints
from talkconv.runs.card import RunCard
from talkconv.runs.open_run import open_run
from talkconv.training.log_file import read_log
from tests.training.cases import go_on, losses, run, same, stop_at, weights, write_recipe

TASKS = {"translation": "bleu", "summarization": "rouge", "language_modelling": "loss"}


@pytest.mark.parametrize("task", TASKS)
def test_a_run_of_each_task_has_everything_in_its_folder(task, request_for):
    request = request_for(task, training=dict(validate_by=TASKS[task], validate_limit=3))
    outcome = run(request)
    assert outcome.finished
    assert outcome.step == 12
    assert sorted(path.name for path in request.out.iterdir()) == [
        "best",
        "checkpoints",
        "last",
        "log.jsonl",
        "origin.json",
        "recipe.toml",
        "run.json",
        "tensorboard",
    ]
    assert [checkpoints.step_of(path) for path in checkpoints.checkpoints_of(request.out)] == [
        6,
        9,
        12,
    ]
    log = read_log(request.out)
    assert [line["step"] for line in log if "loss" in line] == [2, 4, 6, 8, 10, 12]
    valid = [line for line in log if "valid_loss" in line]
    assert [line["step"] for line in valid] == [6, 12]
    assert f"valid_{TASKS[task]}" in valid[0]
    card = RunCard.read(request.out)
    assert (card.task, card.recipe, card.metric) == (task, task, TASKS[task])
    for model in ("best", "last"):
        assert open_run(request.out, model).model.config.use_cache
    last = checkpoints.checkpoints_of(request.out)[-1]
    assert same(weights(request.out / "last"), weights(last))
    # there is no pickle in the folder
    assert not list(request.out.rglob("*.bin")) + list(request.out.rglob("*.pth"))


def test_training_learns(request_for):
    request = request_for(
        training=dict(max_steps=60, validate_every=30, save_every=30, tokens=400),
        model=dict(dim=32, dropout=0.0),
    )
    run(request)
    trained = losses(request.out)
    assert trained[-1][1] < 0.75 * trained[0][1]


def test_accumulated_batches_are_one_large_batch(request_for):
    """Each token has the same weight in any of the accumulated batches."""
    # Adam's first step is the sign of the gradient, be it as small as rounding
    changes = dict(max_steps=1, log_every=1, warmup_steps=0, optimizer="nag", learning_rate=0.1)
    model = dict(dropout=0.0)
    one = request_for(out="one", training=dict(changes, tokens=10_000), model=model)
    run(one)
    batches = 5
    many = request_for(out="many", training=dict(changes, accumulation=batches), model=model)
    run(many)
    assert losses(one.out)[0][1] == pytest.approx(losses(many.out)[0][1], rel=1e-5)
    first, second = weights(one.out / "last"), weights(many.out / "last")
    for name in first:
        torch.testing.assert_close(first[name], second[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(task, request_for, monkeypatch):
    sections = dict(model=dict(dropout=0.2), training=dict(accumulation=2, validate_by="loss"))
    whole = request_for(task, out="whole", **sections)
    run(whole)
    request = request_for(task, out="stopped", **sections)
    # amid an epoch, between checkpoints, and where a validation is due
    for step in (1, 5, 6):
        stop_at(monkeypatch, step)
        outcome = run(request)
        assert not outcome.finished
        assert outcome.step == step
        request = go_on(request)
        monkeypatch.undo()
    assert run(request).finished
    for model in ("best", "last"):
        assert same(weights(whole.out / model), weights(request.out / model))
    at = "checkpoints/checkpoint-12"
    for name in ("optimizer.pt", "scheduler.pt", "position.json"):
        assert (whole.out / at / name).read_bytes() == (request.out / at / name).read_bytes()


@pytest.mark.parametrize(
    ("kills", "steps"), [(3, 24), pytest.param(10, 60, marks=pytest.mark.slow)]
)
def test_kills_at_random_moments_change_no_bit(tmp_path, prepared, kills, steps):
    write_recipe(
        tmp_path / "tiny.toml",
        model=dict(dropout=0.1, offset_dropout=0.1),
        training=dict(max_steps=steps, save_every=2, validate_every=12, log_every=1),
    )
    (tmp_path / "data").symlink_to(prepared())
    driver = subprocess.run(
        [sys.executable, "-m", "tests.training.kill", str(tmp_path), str(kills), "1"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert driver.returncode == 0, driver.stderr
    struck = json.loads(driver.stdout.splitlines()[-1])
    assert len(struck) == kills
    assert any(each["half_written"] for each in struck), (
        "no kill struck while a checkpoint was written"
    )
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for model in ("best", "last"):
        assert same(weights(whole / model), weights(killed / model))
    assert losses(whole) == losses(killed)
    assert not list(killed.rglob(".*"))


def test_a_full_disk_ends_training_with_the_checkpoint_before(request_for, monkeypatch):
    request = request_for(model=dict(dim=64), training=dict(validate_every=100))
    whole = request_for(out="whole", model=dict(dim=64), training=dict(validate_every=100))
    run(whole)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    kept = checkpoints.keep_last

    def then_fill_the_disk(out, keep):
        kept(out, keep)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))

    monkeypatch.setattr(checkpoints, "keep_last", then_fill_the_disk)
    try:
        with pytest.raises(OSError, match=r"checkpoint-6 could not be written .* MB left"):
            run(request)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        monkeypatch.undo()
    assert [path.name for path in (request.out / "checkpoints").iterdir()] == ["checkpoint-3"]
    run(go_on(request))
    assert same(weights(whole.out / "last"), weights(request.out / "last"))


def test_early_stopping(request_for):
    # with a learning rate of almost 0, no validation is better than the first
    still = dict(learning_rate=1e-30, warmup_from=0.0, validate_every=2, patience=2)
    request = request_for(training=still)
    said = io.StringIO()
    outcome = run(request, Console(file=said, width=200))
    assert outcome.finished
    assert outcome.step == 6
    assert outcome.best_step == 2
    assert "no better network in 2 validations: done" in said.getvalue()
    again = go_on(request)
    assert run(again).step == 6
    more = go_on(request, "training.patience=3")
    assert run(more).step == 8


def test_a_loss_that_is_no_number_ends_training(request_for):
    request = request_for(training=dict(learning_rate=1e30, warmup_steps=0))
    with pytest.raises(
        ArithmeticError, match=r"the loss is (nan|inf) after .* lower training.learn"
    ):
        run(request)


def test_nothing_that_is_read_is_executed(request_for):
    """A pickle that would run a command is refused, not run."""
    request = request_for(training=dict(max_steps=2))
    run(request)
    proof = request.out / "proof"

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(proof),)

    torch.save({"state": Trap()}, request.out / "checkpoints" / "checkpoint-2" / "optimizer.pt")
    more = go_on(request, "training.max_steps=5")
    with pytest.raises(Exception, match="Weights only load failed"):
        run(more)
    assert not proof.exists()


def scores(monkeypatch, *values):
    """Let the validations of a run have these (BLEU, loss), one after the other."""
    left = iter(values)

    def validation(self, model, **options):
        bleu, loss = next(left)
        return {"loss": loss, "perplexity": 1.0, "bleu": bleu}

    monkeypatch.setattr("talkconv.training.validate.Validation.__call__", validation)


def test_patience_waits_for_a_score_above_0_and_ties_are_broken_by_loss(request_for, monkeypatch):
    every_second = dict(validate_every=2, validate_by="bleu", patience=2, max_steps=16)
    request = request_for(training=every_second)
    scores(monkeypatch, (0, 5), (0, 4), (0, 4.5), (0, 3), (1, 3), (1, 2.5), (1, 2.6), (0, 2.4))
    outcome = run(request)
    # by the first score alone it would have ended at step 6 with the network of step 2
    assert outcome.step == 16
    assert outcome.best_step == 12
    best = [line["step"] for line in read_log(request.out) if "valid_loss" in line]
    assert best == [2, 4, 6, 8, 10, 12, 14, 16]


def test_patience_may_change_when_a_run_goes_on(request_for, monkeypatch):
    request = request_for(training=dict(validate_every=2, validate_by="bleu", max_steps=4))
    scores(monkeypatch, (5, 1), (4, 1), (3, 1), (2, 1), (1, 1))
    run(request)
    more = go_on(request, "training.patience=3", "training.max_steps=12")
    assert run(more).step == 8
    without = go_on(request, "training.patience=none", "training.max_steps=10")
    assert run(without).step == 10


def test_weights_of_another_network_are_refused(request_for):
    request = request_for(training=dict(max_steps=2))
    run(request)
    path = request.out / "checkpoints" / "checkpoint-2" / "model.safetensors"
    tensors = load_file(path)
    name = next(iter(tensors))
    save_file({f"other_{name}": tensors.pop(name), **tensors}, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=rf"another network than this run: .* no other_{name}"):
        run(go_on(request, "training.max_steps=5"))


def test_new_intervals_take_effect_without_a_warning_when_a_run_goes_on(request_for, caplog):
    request = request_for(training=dict(max_steps=4))
    run(request)
    changes = ["log_every=1", "validate_every=3", "save_every=5", "max_steps=8"]
    logger = logging.getLogger("transformers")
    logger.addHandler(caplog.handler)
    try:
        run(go_on(request, *(f"training.{change}" for change in changes)))
    finally:
        logger.removeHandler(caplog.handler)
    assert caplog.text == ""
    assert [step for step, _ in losses(request.out)] == [2, 4, 5, 6, 7, 8]
    assert [each["step"] for each in read_log(request.out) if "valid_loss" in each] == [4, 6, 8]
