"""Every kernel compiles for GPUs that are not here, without spills and within their memory."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="the GPU kernels need Triton: pip install 'talkconv[gpu]'")

DTYPES = {"float32", "float64", "bfloat16", "float16"}


def run_python(*arguments):
    """In a process of its own: this one has Triton's interpreter where the compiler would be."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    command = [sys.executable, *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def compile_all(tmp_path, *options):
    out = tmp_path / "kernels.json"
    run_python("-m", "talkconv", "bench", "kernels", "--out", str(out), *options)
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


def test_products_start_from_zero_and_loads_stay_in_flight():
    """Tensor cores round toward zero; a loop that waits for its last load has no prefetch."""
    run_python("-c", PRODUCTS)


PRODUCTS = """
import re

import torch

from talkconv.bench.gpu_compile import compile_ahead
from talkconv.ops import gpu

x, offsets = torch.empty(2, 999, 64), torch.empty(2, 999, 1)
windows = gpu.Windows(offsets, offsets, 31, 31, 1.0, True)
launch = gpu.plan_backward(x, x, windows, (x, offsets, offsets))
for arch in (80, 90, 100):
    compiled = compile_ahead(launch, "cuda", arch, 32)
    product = r"(?:tt.dot|warp_group_dot|tc_gen5_mma) (.*?)[:{\\[]"
    products = re.findall(product, compiled.asm["ttgir"])
    assert len(products) == 6, products
    starts = []
    for product in products:
        total, *uses_total = product.split(", ")[2:4]
        assert re.match("%(cst|product)", total), f"a sum goes from tile to tile: {product}"
        starts.append(total.startswith("%cst") or uses_total == ["%false"])
    assert starts == [True] + 5 * [False], products
    code = compiled.code()
    loops = [code.inside(loop) for loop in code.loops]
    pipelined = [loop for loop in loops if any(i.name == "LDGSTS" for i in loop)]
    innermost = min(pipelined, key=len)
    waits = [i.text for i in innermost if i.text.startswith("DEPBAR.LE SB0")]
    assert waits, "the loop waits for no load"
    for wait in waits:
        assert int(wait.split(", ")[1], 16) >= 1, f"no load stays in flight: {wait}"
"""


def test_a_call_compiles_what_is_compiled_ahead():
    """Triton's own road of a call, up to the launch, on a GPU that exists only by name."""
    run_python("-c", CALL)


CALL = """
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from talkconv.bench.gpu_compile import source_of
from talkconv.ops import gpu


class NoGPU:
    def get_current_target(self):
        return GPUTarget("cuda", 80, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


driver.set_active(NoGPU())
x, offsets = torch.randn(2, 70, 64), torch.rand(2, 70, 2)
causal = gpu.Windows(offsets, offsets, 5, 0, 1.0, True)
both = gpu.Windows(offsets, offsets, 5, 3, 1.0, True)
for launch in (
    gpu.plan_forward(x, causal, x, torch.tensor([70, 3])),
    gpu.plan_forward(x[0], both, x[0], None, torch.tensor([0, 3, 70])),
    gpu.plan_backward(x, x, both, (x, offsets, offsets)),
):
    called = launch.kernel.warmup(**launch.arguments, **launch.options, grid=(launch.programs,))
    ahead = source_of(launch)
    assert called.src.signature == ahead.signature
    assert called.src.constants == ahead.constants
    assert {path: found for path, found in called.src.attrs.items() if found} == ahead.attrs
"""
