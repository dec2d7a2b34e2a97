"""Every kernel compiles for GPUs that are not present, without spills and with a bounded work.

Triton's compiler runs in another process: this one has the interpreter in its place.
"""

import json
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="the GPU kernels need Triton: pip install 'talkconv[gpu]'")

from tests.ops import compiled_kernels
from tests.ops.compiler import compiling

FORWARD = {"chunk_sums", "scan_totals", "read_windows", "direct"}
SORTED = {"offset_grads", "window_events", "event_sums", "scan_totals", "walk_events", "direct"}


def assert_fits(rows):
    for row in rows:
        if row["kernel"] == "torch.sort":
            continue
        assert row["spilled"] == 0, row
        assert row["registers"] > 0, row
        assert row["shared"] <= row["shared_limit"], row
        assert row["occupancy"] > 0, row


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
    rows, atomics = compiling(compiled_kernels.count, target)
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
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "talkconv", "bench", "kernels", "--all", "--out", str(out)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    rows = json.loads(out.read_text())["results"]["kernels"]
    assert {row["target"] for row in rows} == {"A100", "H100", "B200", "MI300X"}
    assert {row["dtype"] for row in rows} == {"float32", "float64", "bfloat16", "float16"}
    ways = {"forward, lengths", "backward, lengths", "forward, packed", "backward, packed"}
    assert {row["call"] for row in rows} == {"forward", "backward", "step", *ways}
    assert_fits(rows)


@pytest.mark.parametrize("arch", [80, pytest.param(90, marks=SLOW), pytest.param(100, marks=SLOW)])
def test_products_start_from_zero_and_loads_stay_in_flight(arch):
    """Tensor cores round toward zero; a loop that waits for its last load has no prefetch."""
    products, waits = compiling(compiled_kernels.products_of, arch)
    assert len(products) == 6, products
    starts = []
    for product in products:
        total, *uses_total = product.split(", ")[2:4]
        assert re.match("%(cst|product)", total), f"a sum goes from tile to tile: {product}"
        starts.append(total.startswith("%cst") or uses_total == ["%false"])
    assert starts == [True] + 5 * [False], products
    assert waits, "the loop waits for no load"
    for wait in waits:
        assert int(wait.split(", ")[1], 16) >= 1, f"no load stays in flight: {wait}"


@pytest.mark.slow
def test_a_call_compiles_what_is_compiled_ahead():
    """Follow Triton through a call up to the launch, on a GPU that exists only by name."""
    found = compiling(compiled_kernels.called_and_ahead)
    assert {name for name, _, _ in found} == FORWARD | SORTED
    for name, called, ahead in found:
        assert called == ahead, name
