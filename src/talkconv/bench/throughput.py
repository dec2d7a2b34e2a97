"""Throughput and memory over length: the paper's table, with the methods that it leaves out."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace

import torch

from talkconv.bench.correctness import Finding, check_methods
from talkconv.bench.inputs import DIRECTIONS, FORWARD, Inputs, Setting
from talkconv.bench.measure import FULL, QUICK, Pace, Timing, at_pace
from talkconv.bench.methods import FUSED, METHODS, OURS, PLAIN
from talkconv.bench.own_process import run_alone
from talkconv.bench.part import Part, Row, Rows, next_shorter
from talkconv.bench.peak_memory import Peak, available_bytes, peak_of
from talkconv.bench.side_by_side import RowResult, measure_row, too_slow
from talkconv.machine import has_bfloat16

# The lengths, and about how long a row of that length takes on two cores.
LENGTHS = {10: 35, 100: 45, 1000: 140, 10_000: 300, 100_000: 130}
QUICK_LENGTHS = {10: 4, 100: 5, 1000: 11}
# One method of each family is enough for a quick run.
QUICK_METHODS = (
    OURS,
    PLAIN,
    FUSED,
    "window attention, blocks",
    "DynamicConv k=3, unfold",
    "DynamicConv k=31, band",
    "LightConv k=31, grouped",
    "depthwise convolution k=63",
    "LSTM",
)
# bfloat16 is measured beside float32 up to this length. With longer ones, all parts together would
# take more than an hour.
_MOST_BFLOAT16 = 100

# Inputs of at most so many tokens warm up libraries, threads and compilers.
_WARM_UP_TOKENS = 1000
# The inputs of all methods fit into one process as long as x has at most so many bytes.
_MOST_TOGETHER = 1 << 30


def row_key(direction: str, dtype: torch.dtype, n: int) -> str:
    """Return the key of a row.

    >>> row_key("forward", torch.float32, 1000)
    'forward, float32, n = 1000'
    """
    return f"{direction}, {str(dtype).removeprefix('torch.')}, n = {n}"


def throughput_part(quick: bool) -> Part:
    """Return the paper's table of throughput and memory as a part."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    names = QUICK_METHODS if quick else tuple(METHODS)
    dtypes = [torch.float32]
    if has_bfloat16() and not quick:
        dtypes.append(torch.bfloat16)
    # Methods that cannot run on this machine, by dtype. The check fills this in.
    unable: dict[torch.dtype, dict[str, str]] = {dtype: {} for dtype in dtypes}

    def check() -> list[Finding]:
        found = []
        for dtype in dtypes:
            for each in check_methods((METHODS[name] for name in names), dtype):
                if not each.runs:
                    unable[dtype][each.name] = f"does not run here: {each.why}"
                found.append(each)
        return found

    def measure(rows: Rows, direction: str, dtype: torch.dtype, n: int) -> RowResult:
        able = [name for name in names if name not in unable[dtype]]
        key = functools.partial(row_key, direction, dtype)
        shorter = next_shorter(rows, key, lengths, n)
        pace = QUICK if quick else FULL
        row = measure_methods(Setting(n, dtype=dtype), direction, able, pace, shorter)
        row["absent"] |= unable[dtype]
        return row

    rows = [
        Row(
            row_key(direction, dtype, n),
            functools.partial(measure, direction=direction, dtype=dtype, n=n),
            seconds,
        )
        for dtype in dtypes
        for direction in DIRECTIONS
        for n, seconds in lengths.items()
        if dtype == torch.float32 or n <= _MOST_BFLOAT16
    ]
    return Part("throughput", rows, check)


def measure_methods(
    setting: Setting,
    direction: str,
    names: Iterable[str],
    pace: Pace,
    shorter: tuple[int, RowResult] | None = None,
) -> RowResult:
    """Measure methods on one setting; `shorter` is a shorter length and its row."""

    def alone(name: str) -> Peak:
        return run_alone(peak_alone, name, setting, direction)

    def together(names: list[str], known: Mapping[str, float]) -> dict[str, Timing]:
        return run_alone(time_together, names, setting, direction, pace, known)

    size = setting.batch * setting.n * setting.dim * setting.dtype.itemsize
    return measure_row(
        names,
        functools.partial(
            _why_not, setting=setting, direction=direction, pace=pace, shorter=shorter
        ),
        alone,
        together if size <= _MOST_TOGETHER else None,
        pace,
    )


def _why_not(
    name: str,
    setting: Setting,
    direction: str,
    pace: Pace,
    shorter: tuple[int, RowResult] | None,
) -> str | None:
    method = METHODS[name]
    if direction != FORWARD and not method.trains:
        return "has no backward on a CPU"
    free = available_bytes()
    largest = method.largest(setting) * setting.dtype.itemsize
    if free is not None and largest > free:
        return f"needs a tensor of {largest / 2**30:,.0f} GiB"
    return too_slow(name, setting.n, method.power, pace, shorter)


def peak_alone(name: str, setting: Setting, direction: str) -> Peak:
    """Warm up on a short input and run once on the whole one. Call this in its own process."""
    torch.manual_seed(0)
    method = METHODS[name]
    short = replace(setting, n=min(setting.n, _WARM_UP_TOKENS))
    method.make(Inputs(short)).run(direction)()
    return peak_of(method.make(Inputs(setting)).run(direction))


def time_together(
    names: list[str],
    setting: Setting,
    direction: str,
    pace: Pace,
    known: Mapping[str, float] | None = None,
) -> dict[str, Timing]:
    """Let methods take turns in this process."""
    torch.manual_seed(0)
    inputs = Inputs(setting)
    runs = {name: METHODS[name].make(inputs).run(direction) for name in names}
    return at_pace(runs, pace, known)
