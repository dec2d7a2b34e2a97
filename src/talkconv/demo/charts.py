"""Draws line charts as inline SVG. The page's style sheet sets the colours."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH, HEIGHT = 440, 270
LEFT, TOP, BOTTOM = 46, 24, 42
# room for the names of several lines
NAMES = 112


@dataclass(frozen=True)
class Line:
    """A named curve; `kind` is its class in the style sheet."""

    name: str
    kind: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, with labels at `ticks`. With `log` it is logarithmic."""

    title: str
    low: float
    high: float
    ticks: Sequence[float]
    label: Callable[[float], str] = field(default=lambda value: f"{value:g}")
    log: bool = False

    def part(self, value: float) -> float:
        """Return the position of a value, from 0 at `low` to 1 at `high`."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def chart(x: Axis, y: Axis, lines: Sequence[Line], describe: str) -> str:
    """Return an SVG with a name at the end of each line. Points show their values as tooltips."""
    right = WIDTH - (NAMES if len(lines) > 1 else 14)
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(describe)}">'
    ]
    for tick in y.ticks:
        row = _row(y, tick)
        parts.append(f'<path class="grid" d="M{LEFT} {row:.1f}H{right}"/>')
        parts.append(_text(LEFT - 8, row + 4, y.label(tick), "end"))
    for tick in x.ticks:
        parts.append(_text(_column(x, tick, right), HEIGHT - BOTTOM + 18, x.label(tick), "middle"))
    parts.append(_text((LEFT + right) / 2, HEIGHT - 6, x.title, "middle", "axis"))
    parts.append(_text(4, 12, y.title, "start", "axis"))
    ends = _spread([_row(y, line.points[-1][1]) for line in lines])
    for line, end in zip(lines, ends, strict=True):
        parts.append(_drawn(x, y, line, right))
        if len(lines) > 1:
            parts.append(_text(right + 9, end + 4, line.name, "start", f"name {line.kind}"))
    return "".join([*parts, "</svg>"])


def _drawn(x: Axis, y: Axis, line: Line, right: float) -> str:
    places = [(_column(x, a, right), _row(y, b)) for a, b in line.points]
    path = "L".join(f"{column:.1f} {row:.1f}" for column, row in places)
    dots = "".join(
        f'<circle cx="{column:.1f}" cy="{row:.1f}" r="3"><title>{escape(line.name)}: '
        f"{escape(y.label(b))} at {escape(x.label(a))}</title></circle>"
        for (column, row), (a, b) in zip(places, line.points, strict=True)
        # hundreds of dots would look like a thick line
        if len(places) <= 20
    )
    return f'<g class="line {line.kind}"><path d="M{path}"/>{dots}</g>'


def _column(x: Axis, value: float, right: float) -> float:
    return LEFT + x.part(value) * (right - LEFT)


def _row(y: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - y.part(value) * (HEIGHT - TOP - BOTTOM)


def _spread(rows: list[float], gap: float = 17) -> list[float]:
    """Return the rows of labels, moved down until no two labels overlap."""
    placed: dict[int, float] = {}
    last = -math.inf
    for index in sorted(range(len(rows)), key=lambda index: rows[index]):
        last = max(rows[index], last + gap)
        placed[index] = last
    return [placed[index] for index in range(len(rows))]


def _text(x: float, y: float, text: str, anchor: str, kind: str = "tick") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round values that cover the range from `low` to `high`.

    >>> nice_ticks(0, 4.7)
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(step * count, 10) for count in range(first, last + 1)]


def powers_of_ten(low: float, high: float) -> list[float]:
    """Return the powers of ten that cover the range from `low` to `high`.

    >>> powers_of_ten(0.3, 45)
    [0.1, 1.0, 10.0, 100.0]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**exponent for exponent in range(first, last + 1)]
