"""Throughput and memory over length: the paper's table, with the methods that it leaves out."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace

import torch

from talkconv.bench.inputs import FORWARD, Inputs, Setting
from talkconv.bench.measure import Pace, Timing, at_pace
from talkconv.bench.methods import METHODS
from talkconv.bench.own_process import run_alone
from talkconv.bench.peak_memory import Peak, available_bytes, peak_of
from talkconv.bench.side_by_side import RowResult, measure_row, too_slow

# Inputs of at most so many tokens warm up libraries, threads and compilers.
_WARM_UP_TOKENS = 1000
# The inputs of all methods fit into one process as long as x has at most so many bytes.
_MOST_TOGETHER = 1 << 30


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
    """Warm up on a short input and run once on the whole one; call this in an own process."""
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
