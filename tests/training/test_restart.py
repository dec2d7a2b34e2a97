"""torchrun restarts the processes of a run, and it goes on by itself from its last checkpoint."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from talkconv.training.log_file import read_log
from tests.training.cases import losses, same, weights, write_recipe

ROOT = Path(__file__).parents[2]
SECTIONS = dict(
    model=dict(dropout=0.2),
    training=dict(max_steps=8, accumulation=2, log_every=1, validate_every=4, save_every=3),
)


def launch(*words, **environment) -> subprocess.Popen:
    """Start torchrun; all of it stays on this machine."""
    inherited = {name: value for name, value in os.environ.items() if "TORCHELASTIC" not in name}
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *map(str, words)],
        env={
            **inherited,
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            **{name: str(value) for name, value in environment.items()},
        },
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(*launched: subprocess.Popen, timeout: float = 240) -> list[str]:
    """Wait for launchers to end by themselves, and return what each of them printed."""
    try:
        return [each.communicate(timeout=timeout)[0] for each in launched]
    finally:
        for each in launched:
            with contextlib.suppress(ProcessLookupError):
                each.kill()


@pytest.fixture
def words(tmp_path, prepared):
    """Return the command of a run, without the folder that it writes."""
    path = write_recipe(tmp_path / "tiny.toml", **SECTIONS)
    return ["train", path, "--data", prepared(), "--out"]


def assert_same_run(one: Path, two: Path) -> None:
    for model in ("best", "last"):
        assert same(weights(one / model), weights(two / model))
    assert losses(one) == losses(two)
    assert [line["step"] for line in read_log(two) if "valid_loss" in line] == [4, 8]
    assert not list(two.rglob(".*"))


@pytest.mark.slow
def test_a_killed_process_changes_no_bit(words, tmp_path):
    here = ["--standalone", "--nproc-per-node=2", "--max-restarts=3", "-m"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    (said,) = finish(launch(*here, "talkconv", *words, whole))
    assert "from step 0 to 8" in said
    dies = dict(DIES_RANK=1, DIES_STEP=5, DIES_FILE=tmp_path / "died")
    one = launch(*here, "tests.training.dies_amid_a_step", *words, killed, **dies)
    (said,) = finish(one)
    assert one.returncode == 0, said
    assert (tmp_path / "died").read_text() == "at step 5"
    # the last checkpoint before the kill
    assert "from step 3 to 8" in said
    assert_same_run(whole, killed)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_on_one_of_two_machines_changes_no_bit(words, tmp_path, rank):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    dies = dict(DIES_RANK=rank, DIES_STEP=5, DIES_FILE=tmp_path / "died")
    for out, module, environment in (
        (whole, "talkconv", {}),
        (killed, "tests.training.dies_amid_a_step", dies),
    ):
        there = ["--nnodes=2", "--nproc-per-node=1", "--max-restarts=3", "--rdzv-backend=c10d"]
        there += [f"--rdzv-endpoint=127.0.0.1:{free_port()}", f"--rdzv-id={out.name}"]
        there += ["--local-addr=127.0.0.1", "-m", module, *words, out]
        machines = [launch(*there, **environment) for _ in range(2)]
        said = finish(*machines)
        assert [machine.returncode for machine in machines] == [0, 0], "\n".join(said)
    assert (tmp_path / "died").exists()
    assert any("from step 3 to 8" in each for each in said)
    assert_same_run(whole, killed)
