"""Tests `talkconv bench gpu` and benchmarks/on_a_gpu.sh where there is no GPU."""

import functools
import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

from talkconv.bench import gpu_times
from talkconv.bench.gpu_times import check, describe_gpu, rows, table_of
from talkconv.bench.inputs import Setting
from talkconv.cli import app
from talkconv.ops import gpu, implementations

pytest.importorskip("triton", reason="the GPU kernels need Triton: pip install 'talkconv[gpu]'")

from tests.ops.gpu_runs import as_on_a_gpu

__all__ = ["as_on_a_gpu"]

CPU = torch.device("cpu")
TINY = Setting(6, batch=1, dim=4, heads=2)
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "on_a_gpu.sh"


@pytest.fixture
def _in_the_interpreter(monkeypatch, as_on_a_gpu):
    monkeypatch.setattr(implementations, "_compiled_for", lambda x: gpu)
    monkeypatch.setattr(gpu_times, "REACHES", ((3, 3),))
    monkeypatch.setattr(gpu_times, "FAST", (torch.float32,))
    # one run of each contestant is enough
    monkeypatch.setattr(gpu_times, "ENOUGH", 0.0)


@pytest.mark.usefixtures("_in_the_interpreter")
def test_the_command_times_and_writes(monkeypatch, tmp_path):
    """The whole command runs, on tiny sizes; only the GPU itself is made up."""
    monkeypatch.setattr(gpu_times, "find_gpu", lambda: CPU)
    monkeypatch.setattr(gpu_times, "SMALL", TINY)
    monkeypatch.setattr(gpu_times, "replace", lambda setting, **changes: setting)
    tiny = functools.partial(Setting, batch=1, dim=4, heads=2)
    monkeypatch.setattr(gpu_times, "Setting", tiny)
    about = SimpleNamespace(
        name="no GPU", major=8, minor=0, total_memory=2**30, multi_processor_count=1
    )
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: about)
    out = tmp_path / "times.json"
    result = CliRunner().invoke(app, ["bench", "gpu", "--n", "6", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "| | n | TaLK, window 6 | fused attention |" in result.output
    assert "| forward + backward, float32 | 6 | " in result.output
    written = json.loads(out.read_text())
    assert {"commit", "torch", "date", "command"} <= set(written["machine"])
    assert written["results"]["gpu"]["capability"] == "8.0"
    assert {"driver", "triton"} <= set(written["results"]["gpu"])
    first = written["results"]["rows"][0]
    assert (first["n"], first["direction"], first["dtype"]) == (6, "forward", "float32")
    assert all(timing["median"] > 0 for timing in first["timings"].values())


def test_a_wrong_result_is_not_timed(monkeypatch):
    def wrong(x, left, right, **settings):
        return 2 * x + 0 * left.sum() + 0 * right.sum()

    monkeypatch.setattr(gpu_times.talkconv, "talk_conv", wrong)
    with pytest.raises(ValueError, match=r"TaLK, window 6, float32: it is off by"):
        check([TINY], [(3, 3)], CPU)


def test_a_contestant_that_does_not_fit_is_left_out(monkeypatch):
    def too_large(q, k, v):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(gpu_times.baselines, "fused_attention", too_large)
    monkeypatch.setattr(gpu_times, "ENOUGH", 0.0)
    found = list(rows([TINY], [(3, 3)], CPU, seconds=0.0))
    assert found[0].timings[gpu_times.FUSED] is None
    assert table_of(found).splitlines()[2].endswith("| – |")


def test_without_nvidia_smi_the_driver_is_not_known(monkeypatch):
    monkeypatch.setenv("PATH", "")
    about = SimpleNamespace(name="one", major=9, minor=0, total_memory=1, multi_processor_count=1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: about)
    assert describe_gpu(CPU)["driver"] is None


def test_without_a_gpu_the_command_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = CliRunner().invoke(app, ["bench", "gpu"])
    assert result.exit_code == 1
    assert "torch finds no GPU. `nvidia-smi` (or `rocm-smi`) must list one" in result.output


def test_without_a_gpu_the_script_ends_at_once_and_says_why(tmp_path):
    (tmp_path / "dirname").symlink_to(shutil.which("dirname"))
    command = [shutil.which("bash"), str(SCRIPT)]
    found = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert found.returncode == 1
    assert "no GPU was found: there is neither nvidia-smi nor rocm-smi" in found.stderr
    assert not found.stdout


def test_a_driver_without_a_gpu_is_named(tmp_path):
    for tool in ("dirname", "grep"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    nvidia_smi = tmp_path / "nvidia-smi"
    nvidia_smi.write_text(f"#!{shutil.which('bash')}\n")
    nvidia_smi.chmod(0o755)
    command = [shutil.which("bash"), str(SCRIPT)]
    found = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert found.returncode == 1
    assert "nvidia-smi lists no GPU" in found.stderr
