"""Every kernel compiles for GPUs that are not present, without spills and with a bounded work.

Triton's compiler runs in a process of its own: this one has the interpreter in its place.
"""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="the GPU kernels need Triton: pip install 'talkconv[gpu]'")

FORWARD = {"chunk_sums", "scan_totals", "read_windows", "direct"}
SORTED = {"offset_grads", "window_events", "event_sums", "scan_totals", "walk_events", "direct"}


def run_python(*arguments):
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    command = [sys.executable, *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def assert_fits(rows):
    for row in rows:
        if row["kernel"] == "torch.sort":
            continue
        assert row["spilled"] == 0, row
        assert row["registers"] > 0, row
        assert row["shared"] <= row["shared_limit"], row
        assert row["occupancy"] > 0, row


# float32 on one GPU, as two JSON lines; the second line has the atomic instructions of the PTX
COUNT = """
import json
import sys

import torch

from talkconv.bench.gpu_compile import compile_ahead
from talkconv.bench.gpu_estimate import TARGETS
from talkconv.bench.kernels import calls, measured

target, = (each for each in TARGETS if each.name == sys.argv[1])
reaches = dict(
    forward=((31, 31), (127, 127), (2047, 2048)),
    backward=((15, 15), (64, 64), (127, 127), (2047, 2048)),
)
rows, atomics = [], []
for name, chosen in reaches.items():
    for call in (call for call in calls((torch.float32,), chosen) if call.name == name):
        rows += measured(target, call)
        for step in call.steps:
            if hasattr(step, "kernel"):
                ptx = compile_ahead(step, "cuda", target.arch, 32).asm["ptx"]
                atomics += [word for word in ptx.split() if word.startswith(("atom", "red."))]
print(json.dumps(rows))
print(json.dumps(atomics))
"""

SLOW = pytest.mark.slow


def per_element(rows, call, window):
    """Return the instructions and bytes of all kernels of a call, for an element of its result."""
    chosen = [
        row
        for row in rows
        if (row["call"], row["window"]) == (call, window) and row["kernel"] != "torch.sort"
    ]
    names = ("instructions", "asked_bytes", "least_bytes")
    return [sum(row[name] for row in chosen) for name in names], {row["kernel"] for row in chosen}


# one test for all of it: compiling takes longer than looking
@pytest.mark.slow
@pytest.mark.parametrize("target", ["A100", "H100", "B200"])
def test_the_work_does_not_grow_with_the_window_and_nothing_is_atomic(target):
    rows, atomics = map(json.loads, run_python("-c", COUNT, target).splitlines())
    expected = {
        "forward": ((62, 254, 4095), FORWARD, 60),
        "backward": ((128, 254, 4095), SORTED, 115),
    }
    for call, (windows, kernels, most) in expected.items():
        works = []
        for window in windows:
            work, found = per_element(rows, call, window)
            assert found == kernels
            assert work[0] <= most
            works.append(work)
        for numbers in zip(*works, strict=True):
            assert max(numbers) <= 1.1 * min(numbers)
    assert_fits(rows)
    assert atomics == []


@pytest.mark.slow
def test_every_way_compiles_in_every_dtype(tmp_path):
    out = tmp_path / "kernels.json"
    run_python("-m", "talkconv", "bench", "kernels", "--all", "--out", str(out))
    rows = json.loads(out.read_text())["results"]["kernels"]
    assert {row["target"] for row in rows} == {"A100", "H100", "B200", "MI300X"}
    assert {row["dtype"] for row in rows} == {"float32", "float64", "bfloat16", "float16"}
    ways = {"forward, lengths", "backward, lengths", "forward, packed", "backward, packed"}
    assert {row["call"] for row in rows} == {"forward", "backward", "step", *ways}
    assert_fits(rows)


@pytest.mark.parametrize("arch", [80, pytest.param(90, marks=SLOW), pytest.param(100, marks=SLOW)])
def test_products_start_from_zero_and_loads_stay_in_flight(arch):
    """Tensor cores round toward zero; a loop that waits for its last load has no prefetch."""
    run_python("-c", PRODUCTS, str(arch))


PRODUCTS = """
import re
import sys

import torch

from talkconv.bench.gpu_compile import compile_ahead
from talkconv.ops import gpu_plans

x, offsets = torch.empty(2, 999, 64), torch.empty(2, 999, 1)
windows = gpu_plans.Windows(offsets, offsets, 31, 31, 1.0, True)
_, launch, _ = gpu_plans.backward(x, x, windows, (x, offsets, offsets))
compiled = compile_ahead(launch, "cuda", int(sys.argv[1]), 32)
product = r"(?:tt.dot|warp_group_dot|tc_gen5_mma) (.*?)[:{\\[]"
products = re.findall(product, compiled.asm["ttgir"])
assert len(products) == 6, products
starts = []
for product in products:
    total, *uses_total = product.split(", ")[2:4]
    assert re.match("%(cst|product)", total), f"a sum goes from tile to tile: {product}"
    starts.append(total.startswith("%cst") or uses_total == ["%false"])
assert starts == [True] + 5 * [False], products
code = compiled.code
loops = [code.inside(loop) for loop in code.loops]
pipelined, = [loop for loop in loops if any(i.name == "LDGSTS" for i in loop)]
waits = [i.text for i in pipelined if i.text.startswith("DEPBAR.LE SB0")]
assert waits, "the loop waits for no load"
for wait in waits:
    assert int(wait.split(", ")[1], 16) >= 1, f"no load stays in flight: {wait}"
"""


@pytest.mark.parametrize(
    "kernels",
    [
        ["chunk_sums", "window_events"],
        pytest.param(sorted(FORWARD | SORTED), marks=SLOW, id="all"),
    ],
)
def test_a_call_compiles_what_is_compiled_ahead(kernels):
    """Follow Triton through a call up to the launch, on a GPU that exists only by name."""
    run_python("-c", CALL, *kernels)


CALL = """
import sys

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from talkconv.bench.gpu_compile import source_of
from talkconv.ops import gpu_plans


class NoGPU:
    def get_current_target(self):
        return GPUTarget("cuda", 80, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


driver.set_active(NoGPU())
x, offsets = torch.randn(2, 70, 64), torch.rand(2, 70, 2)
causal = gpu_plans.Windows(offsets, offsets, 5, 0, 1.0, True)
packed = gpu_plans.Windows(offsets[0], offsets[0], 500, 3, 1.0, True)
ends = torch.tensor([0, 3, 70])
grads = (x[0], offsets[0], offsets[0])
for launch in (
    *gpu_plans.forward(x, causal, x, torch.tensor([70, 3])),
    *gpu_plans.backward(x[0], x[0], packed, grads, None, ends),
):
    if isinstance(launch, gpu_plans.Sort) or launch.kernel.__name__ not in sys.argv[1:]:
        continue
    called = launch.kernel.warmup(**launch.arguments, **launch.options, grid=(launch.programs,))
    ahead = source_of(launch)
    assert called.src.signature == ahead.signature
    assert called.src.constants == ahead.constants
    assert {path: found for path, found in called.src.attrs.items() if found} == ahead.attrs
"""
