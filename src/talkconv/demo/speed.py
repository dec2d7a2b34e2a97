"""Measures the time of the operation on this machine, and of attention and DynamicConv."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

import talkconv
from talkconv.bench import baselines
from talkconv.bench.measure import measure

LENGTHS = (64, 128, 256, 512, 1024, 2048)
BATCH, DIM, HEADS, REACH, TAPS = 4, 256, 4, 15, 31
SETTING = f"batch {BATCH}, d {DIM}, {HEADS} heads, windows of up to {TAPS} tokens, forward, float32"
OURS, ATTENTION, DYNAMIC = "TaLK", "attention", "DynamicConv"
# the two published implementations of a DynamicConv; the faster one counts
_WAYS = {"band": baselines.dynamic_conv_band, "unfold": baselines.dynamic_conv_unfold}

Run = Callable[[], object]


@dataclass(frozen=True)
class Speed:
    """Median times: seconds[name][k] is for lengths[k] tokens."""

    lengths: list[int]
    seconds: dict[str, list[float]]

    def ratio(self, name: str) -> float:
        """Return the time at the greatest length, divided by ours."""
        return self.seconds[name][-1] / self.seconds[OURS][-1]


def measure_speed(
    lengths: Sequence[int] = LENGTHS,
    seconds: float = 0.15,
    tell: Callable[[], object] = lambda: None,
) -> Speed:
    """Measure as `talkconv bench op` does, only shorter. `tell` is called at each length."""
    found: dict[str, list[float]] = {OURS: [], ATTENTION: [], DYNAMIC: []}
    # The longest come first, because they must not reuse memory that short runs have freed.
    for n in sorted(lengths, reverse=True):
        times = measure(_contestants(n), seconds=seconds, most_rounds=9)
        medians = {name: timing.median for name, timing in times.items()}
        found[OURS].insert(0, medians[OURS])
        found[ATTENTION].insert(0, medians[ATTENTION])
        found[DYNAMIC].insert(0, min(medians[way] for way in _WAYS))
        tell()
    return Speed(sorted(lengths), found)


def _contestants(n: int) -> dict[str, Run]:
    x = torch.randn(BATCH, n, DIM)
    left, right = torch.rand(2, BATCH, n, HEADS)
    q, k, v = torch.randn(3, BATCH, HEADS, n, DIM // HEADS)
    weights = torch.randn(BATCH, n, HEADS, TAPS).softmax(-1)
    return {
        OURS: functools.partial(talkconv.talk_conv, x, left, right, l_max=REACH, r_max=REACH),
        ATTENTION: functools.partial(baselines.fused_attention, q, k, v),
        **{name: functools.partial(way, x, weights) for name, way in _WAYS.items()},
    }
