"""Measures how time grows with length, window and width, as in the paper's table of layer types.

The exponent is the slope of a straight line through at least five points on logarithmic axes.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from talkconv.bench import baselines, definitions
from talkconv.bench.bars import Bar
from talkconv.bench.correctness import check_contestants
from talkconv.bench.inputs import Contestant, Inputs, Setting
from talkconv.bench.measure import Pace, Run, measure, plain, seconds_of
from talkconv.bench.methods import FUSED, METHODS, OURS
from talkconv.bench.own_process import run_alone
from talkconv.bench.part import Part, Row, Rows
from talkconv.bench.side_by_side import RowResult

# n is the length of the sequence, window the width of the kernel in tokens, d the channels.
AXES = ("n", "window", "d")
HEAD_CHANNELS = 64
# The exponents of TaLK that the bars expect, by axis.
TALK_BARS = {"n": 1.0, "window": 0.0}
MOST_DEVIATION = 0.1
PACE = Pace(seconds=0.3, least_rounds=3, enough=3.0)
QUICK_PACE = Pace(seconds=0.02, least_rounds=2, enough=0.2)


@dataclass(frozen=True)
class Layer:
    """One row of the table. An axis that the layer does not depend on has no points."""

    name: str
    # the paper's complexity per layer, and its exponents
    formula: str
    exponents: Mapping[str, int]
    make: Callable[[Inputs], Contestant]
    # the sizes that stay constant while one of them varies
    base: Setting
    # half the window, or kernel width k = 2 * reach + 1
    points: Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Slope:
    """A fitted exponent and its standard error."""

    exponent: float
    error: float


def fit(values: Sequence[float], seconds: Sequence[float]) -> Slope:
    """Return the slope of log(seconds) over log(values) by least squares.

    >>> fit([1, 2, 4, 8, 16], [3, 6, 12, 24, 48])
    Slope(exponent=1.0, error=0.0)
    """
    x = [math.log2(value) for value in values]
    y = [math.log2(value) for value in seconds]
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    spread = sum((each - x_mean) ** 2 for each in x)
    slope = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)) / spread
    residuals = (b - y_mean - slope * (a - x_mean) for a, b in zip(x, y, strict=True))
    variance = sum(each**2 for each in residuals) / (len(x) - 2)
    return Slope(round(slope, 4), round(math.sqrt(variance / spread), 4))


def _full_conv(inputs: Inputs) -> Contestant:
    s = inputs.setting
    weight = torch.randn(s.dim, s.dim, 2 * s.reach + 1, dtype=s.dtype)
    return Contestant(baselines.full_conv, (inputs.channels_first, weight), definitions.full_conv)


def _dynamic(inputs: Inputs) -> Contestant:
    kernels = inputs.kernels(2 * inputs.setting.reach + 1)
    return Contestant(baselines.dynamic_conv_unfold, (inputs.x, kernels), definitions.dynamic_conv)


def _setting(n: int, dim: int, reach: int, batch: int = 1) -> Setting:
    return Setting(n, batch, dim, dim // HEAD_CHANNELS, reach)


def doublings(first: int, count: int) -> list[int]:
    """Return numbers that double.

    >>> doublings(3, 4)
    [3, 6, 12, 24]
    """
    return [first * 2**power for power in range(count)]


WIDTHS = doublings(128, 5)
# Layers whose time grows with the square of d take fewer channels.
NARROW = doublings(64, 5)
LAYERS = (
    Layer(
        "recurrent (LSTM)",
        "n · d²",
        dict(n=1, d=2),
        METHODS["LSTM"].make,
        _setting(128, 512, 0, batch=8),
        dict(n=doublings(64, 5), d=NARROW),
    ),
    Layer(
        "convolutional",
        "k · n · d²",
        dict(n=1, window=1, d=2),
        _full_conv,
        _setting(1024, 256, 7),
        dict(n=doublings(512, 5), window=doublings(4, 5), d=NARROW),
    ),
    Layer(
        "self-attention",
        "n² · d",
        dict(n=2, d=1),
        METHODS[FUSED].make,
        _setting(1024, 256, 0),
        dict(n=doublings(512, 5), d=WIDTHS),
    ),
    Layer(
        "DynamicConv",
        "k · n · d",
        dict(n=1, window=1, d=1),
        _dynamic,
        _setting(4000, 256, 7),
        dict(n=doublings(2000, 5), window=doublings(4, 5), d=WIDTHS),
    ),
    Layer(
        "window attention",
        "k · n · d (not in the paper)",
        dict(n=1, window=1, d=1),
        METHODS["window attention, blocks"].make,
        _setting(4096, 256, 31),
        dict(n=doublings(2000, 5), window=doublings(32, 5), d=WIDTHS),
    ),
    Layer(
        OURS,
        "n · d",
        dict(n=1, window=0, d=1),
        METHODS[OURS].make,
        _setting(64_000, 256, 31),
        # Even the shortest input is larger than the cache, so that no point is faster for it.
        dict(n=doublings(62_500, 5), window=[3, 7, 15, 31, 63, 127, 255], d=WIDTHS),
    ),
)
NAMES = {layer.name: layer for layer in LAYERS}


def settings_of(layer: Layer, axis: str) -> dict[int, Setting]:
    """Return the setting of each point. A window is given by its reach on each side, in tokens."""
    base = layer.base

    def at(value: int) -> Setting:
        if axis == "n":
            return replace(base, n=value)
        if axis == "window":
            return replace(base, reach=value)
        return replace(base, dim=value, heads=value // HEAD_CHANNELS)

    return {value: at(value) for value in layer.points[axis]}


def measure_axis(name: str, axis: str, pace: Pace) -> RowResult:
    """Measure one layer along one axis and fit its exponent."""
    timings = run_alone(time_axis, name, axis, pace)
    # Time grows with the width of a window or kernel, not with its reach on one side.
    sizes = [2 * int(key) + 1 if axis == "window" else int(key) for key in timings]
    slope = fit(sizes, [timing["median"] for timing in timings.values()])
    return {"timings": timings, "exponent": slope.exponent, "error": slope.error}


def time_axis(name: str, axis: str, pace: Pace) -> dict[str, dict[str, float]]:
    """Let all points of one axis take turns in this process; keys are their values."""
    torch.manual_seed(0)
    layer = NAMES[name]
    runs: dict[str, Run] = {
        str(value): layer.make(Inputs(setting)).forward
        for value, setting in settings_of(layer, axis).items()
    }
    timings = measure(
        runs,
        seconds=pace.seconds,
        least_rounds=pace.least_rounds,
        enough=pace.enough,
        timer=second_run,
    )
    return plain(timings)


def second_run(run: Run) -> float:
    """Time the second of two runs.

    TaLK keeps memory for its next output, but not enough for the outputs of all points. A single
    run would therefore find such memory or not, depending on the point before it.
    """
    run()
    return seconds_of(run)


def complexity_part(quick: bool) -> Part:
    """Return the paper's table of layer types as a part. The quick one has only TaLK."""
    layers = [layer for layer in LAYERS if layer.name == OURS or not quick]
    pace = QUICK_PACE if quick else PACE
    rows = [
        Row(
            row_key(layer.name, axis),
            functools.partial(_measure, name=layer.name, axis=axis, pace=pace),
            3 if quick else 12,
        )
        for layer in layers
        for axis in layer.points
    ]
    makes = {layer.name: layer.make for layer in layers}
    return Part("complexity", rows, lambda: check_contestants(makes))


def _measure(rows: Rows, name: str, axis: str, pace: Pace) -> RowResult:
    return measure_axis(name, axis, pace)


def bars_of(rows: Rows) -> list[Bar]:
    """Return the bars on the exponents of TaLK that were measured, from rows by row_key()."""
    bars = []
    for axis, expected in TALK_BARS.items():
        row = rows.get(row_key(OURS, axis))
        if row is not None:
            what = f"exponent of TaLK's time over {axis}: distance from {expected:g}"
            found = abs(row["exponent"] - expected)
            bars.append(Bar(what, found, MOST_DEVIATION, at_least=False))
    return bars


def row_key(name: str, axis: str) -> str:
    """Return the key of a row."""
    return f"{name}, over {axis}"
