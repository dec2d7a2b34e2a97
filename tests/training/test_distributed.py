"""Tests two processes of torchrun on one machine, on a CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.training.log_file import read_log
from talkconv.training.request import Request
from talkconv.training.train_run import train_run
from tests.training.cases import write_recipe


def two_processes(*words) -> subprocess.CompletedProcess:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [*launcher, "-m", *map(str, words)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_two_processes_train_like_one_with_twice_the_accumulation(tmp_path, prepared, silence):
    sections = dict(
        # dropout must be the same: its random numbers depend on the batch, not on the process
        model=dict(dropout=0.2, offset_dropout=0.1),
        training=dict(max_steps=8, log_every=1, validate_every=4, validate_by="bleu"),
    )
    path = write_recipe(tmp_path / "tiny.toml", **sections)
    alone = Request(str(path), ["training.accumulation=4"], prepared(), tmp_path / "one")
    train_run(alone, silence)

    out = tmp_path / "two"
    train_two = ["talkconv", "train", path, "--data", prepared(), "--out", out]
    done = two_processes(*train_two, "training.accumulation=2", "training.max_steps=4")
    assert done.returncode == 0, done.stderr
    # only one process prints it
    assert done.stdout.count("from step 0 to 4") == 1
    # another number of processes can resume it
    train_run(
        Request(alone.recipe, [*alone.overrides, "training.max_steps=8"], alone.data, out, True),
        silence,
    )
    assert_same_log(alone.out, out)


def assert_same_log(one, two) -> None:
    compared = ("step", "epoch", "loss", "grad_norm", "learning_rate", "valid_loss", "valid_bleu")
    for expected, got in zip(read_log(one), read_log(two), strict=True):
        for name in compared:
            if name in expected:
                assert got[name] == pytest.approx(expected[name], rel=2e-5), (name, got["step"])


@pytest.mark.slow
def test_a_network_spread_over_processes_trains_and_goes_on_like_a_whole_one(
    tmp_path, prepared, silence
):
    sections = dict(
        model=dict(dropout=0.2),
        training=dict(max_steps=8, log_every=1, validate_every=4, accumulation=2),
    )
    path = write_recipe(tmp_path / "tiny.toml", **sections)
    alone = Request(str(path), ["training.accumulation=4"], prepared(), tmp_path / "one")
    train_run(alone, silence)
    two = tmp_path / "two"
    for steps in (4, 8):
        changes = ["training.fsdp=true", f"training.max_steps={steps}"]
        done = two_processes("tests.training.fsdp_on_cpu", path, prepared(), two, *changes)
        assert done.returncode == 0, done.stderr
    # the network was really sharded
    assert (two / "checkpoints" / "checkpoint-8" / "pytorch_model_fsdp.bin").exists()
    assert_same_log(alone.out, two)
    names = [sorted(path.name for path in (run / "last").iterdir()) for run in (alone.out, two)]
    assert names[0] == names[1]


@pytest.mark.parametrize(
    ("process", "said"), [("0", "not trained: no recipe is called"), ("1", "")]
)
def test_only_the_first_process_says_what_is_wrong(process, said):
    result = CliRunner().invoke(app, ["train", "tony"], env={"RANK": process})
    assert result.exit_code == 1
    assert result.output.startswith(said)
    assert bool(result.output) == bool(said)
