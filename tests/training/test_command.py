"""Tests the output of the command, and its messages for mistakes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from talkconv.training import fit
from talkconv.training.progress import Progress
from talkconv.training.request import Request
from tests.training.cases import cli, losses, run, stop_at


def test_the_command_trains_and_says_what_is_next(request_for):
    request = request_for(training=dict(max_steps=2))
    code, said = cli(request.recipe, "--data", request.data, "--out", request.out)
    assert code == 0, said
    assert f"Next: talkconv evaluate {request.out}" in said


def test_ctrl_c_says_how_to_go_on(request_for, monkeypatch):
    request = request_for()
    stop_at(monkeypatch, 2)
    code, said = cli(request.recipe, "--data", request.data, "--out", request.out)
    assert code == 130
    assert "stopping after this step; Ctrl-C again stops at once" in said
    assert "saved at step 2." in said
    words = ["train", request.recipe, "--data", request.data, "--out", request.out, "--resume"]
    assert f"To go on: talkconv {' '.join(map(str, words))}" in said


def test_torchrun_is_part_of_what_to_type_to_go_on(monkeypatch):
    request = Request("toy", out=Path("my runs/toy"), seeds=2)
    assert request.command() == "talkconv train toy --out 'my runs/toy' --seeds 2 --resume"
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert request.command().startswith("torchrun --nproc-per-node 2 -m talkconv train toy --out ")


def test_mistakes_are_one_message_each(request_for, prepared, tmp_path):
    request = request_for(training=dict(max_steps=2))
    place = ["--data", request.data, "--out", request.out]

    def refused(*words) -> str:
        code, said = cli(*words)
        assert code == 1
        assert "Traceback" not in said
        assert said.startswith("not trained: ")
        return said

    assert "no recipe is called 'tony': did you mean 'toy'" in refused("tony")
    assert "did you mean 'max_steps'" in refused(request.recipe, "training.maxsteps=3")
    missing = refused(request.recipe, "--data", tmp_path / "nothing")
    assert "must be a prepared folder" in missing
    other = refused(request.recipe, "--data", prepared("language_modelling"))
    assert "is for translation, but" in other
    assert "was prepared for language_modelling" in other
    changed = refused(request.recipe, *place, "data.lowercase=true")
    assert "was prepared with data.lowercase = False, but the recipe has True" in changed
    assert f"talkconv prepare {request.recipe} --raw DIR" in changed
    assert not request.out.exists()

    assert cli(request.recipe, *place)[0] == 0
    assert (
        "already holds a run of recipe translation (at step 2): continue it with --resume"
        in refused(request.recipe, *place)
    )
    assert "was started with model.dim = 8, and it cannot become 16" in refused(
        request.recipe, *place, "--resume", "model.dim=16"
    )
    assert "holds a run of recipe translation, not of" in refused(
        shutil.copy(request.recipe, tmp_path / "other.toml"), *place, "--resume"
    )
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    (stranger / "thesis.txt").write_text("x")
    assert "holds something other than a run: choose another --out" in refused(
        request.recipe, "--data", request.data, "--out", stranger
    )
    assert [path.name for path in stranger.iterdir()] == ["thesis.txt"]


def test_fp16_needs_a_gpu(request_for):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(ValueError, match="'fp16' needs a GPU, and this machine has none"):
        run(request_for(training=dict(precision="fp16")))


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU multiplies bfloat16")
def test_slow_bf16_is_said(request_for, monkeypatch):
    monkeypatch.setattr(fit, "has_bfloat16", lambda: False)
    monkeypatch.setattr(fit.RunTrainer, "go", lambda *_: Progress(step=2))
    request = request_for(training=dict(max_steps=2))
    place = ["--data", request.data, "--out", request.out]
    _, said = cli(request.recipe, *place, "training.precision=bf16")
    assert "bf16' is slower than fp32 here" in said
    _, said = cli(request.recipe, *place[:-1], f"{request.out}-2")
    assert "slower" not in said


def test_fsdp_needs_torchrun(request_for):
    with pytest.raises(ValueError, match="start them with torchrun"):
        run(request_for(training=dict(fsdp=True)))


@pytest.mark.slow
def test_bf16_trains_like_fp32(request_for, tmp_path):
    request = request_for(model=dict(dropout=0.0), training=dict(validate_by="bleu"))
    run(request)
    words = ["train", request.recipe, "training.precision=bf16", "--data", request.data]
    done = subprocess.run(
        [sys.executable, "-m", "talkconv", *words, "--out", tmp_path / "bf16"],
        # some virtual machines promise instructions that they do not have
        env={**os.environ, "OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for (step, whole), (_, half) in zip(
        losses(request.out), losses(tmp_path / "bf16"), strict=True
    ):
        assert half == pytest.approx(whole, rel=0.01), step
        assert half != whole
