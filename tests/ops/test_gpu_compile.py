"""Every kernel compiles for GPUs that are not here, without spills and within their memory."""

import json
import os
import subprocess
import sys

import pytest

DTYPES = {"float32", "float64", "bfloat16", "float16"}


def compile_all(tmp_path, *options):
    """In a process of its own: this one has Triton's interpreter where the compiler would be."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    out = tmp_path / "kernels.json"
    command = [sys.executable, "-m", "talkconv", "bench", "kernels", "--out", str(out), *options]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(out.read_text())["results"]["compiled"]


def assert_fits(rows, kernels):
    assert {row["target"] for row in rows} == {"A100", "H100", "B200", "MI300X"}
    for target in ("A100", "H100", "B200", "MI300X"):
        found = {(row["kernel"], row["dtype"]) for row in rows if row["target"] == target}
        assert found >= {(kernel, dtype) for kernel in kernels for dtype in DTYPES}
    for row in rows:
        assert row["spilled"] == 0, row
        assert row["registers"] > 0, row
        assert row["shared"] <= row["shared_limit"], row
        assert row["occupancy"] > 0, row


def test_every_kernel_compiles(tmp_path):
    assert_fits(compile_all(tmp_path), ("forward", "backward", "step"))


@pytest.mark.slow
def test_every_way_compiles(tmp_path):
    names = [
        f"{kernel}, {way}" for kernel in ("forward", "backward") for way in ("lengths", "packed")
    ]
    assert_fits(compile_all(tmp_path, "--all"), names)
