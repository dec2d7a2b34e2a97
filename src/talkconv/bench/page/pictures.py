"""Line charts on logarithmic axes, readable in black and white and at a third of their size.

Every line has its own dash pattern and marker, and its name stands at its end. Ours is thick.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from talkconv.bench.page.markdown import number
from talkconv.files import whole_file

Points = Sequence[tuple[float, float]]

_SIZE = (10.0, 6.4)  # inches
_FONT = 19
_DOTS_PER_INCH = 120
# With fewer powers of ten, an axis has other ticks: from one or two labels nobody can read values.
_FEWEST_POWERS = 3
# The positions of a line's sample and name to the right of the axes, as shares of their width.
_SAMPLE, _NAMES_FROM = (0.03, 0.08, 0.13), 0.15
# The highest place of a name, as a share of the axes' height; above it, the title may stand.
_HIGHEST_NAME = 0.95
_OURS: dict[str, Any] = dict(
    color="#b00020", linewidth=5.0, linestyle="-", marker="o", markersize=11
)
# Dash patterns and markers; the colours are greys, so that nothing depends on them.
_OTHERS: tuple[dict[str, Any], ...] = tuple(
    dict(color=colour, linestyle=dashes, marker=marker, linewidth=2.4, markersize=10)
    for colour, dashes, marker in (
        ("#000000", "-", "s"),
        ("#000000", (0, (5, 2)), "D"),
        ("#666666", "-", "^"),
        ("#666666", (0, (1, 1.5)), "v"),
        ("#000000", (0, (1, 1.5)), "P"),
        ("#666666", (0, (5, 2)), "X"),
        ("#000000", (0, (6, 2, 1, 2)), "<"),
        ("#666666", (0, (6, 2, 1, 2)), ">"),
        ("#666666", "-", "*"),
    )
)


@dataclass(frozen=True)
class Picture:
    """A chart with one line for each name. Both axes are logarithmic."""

    name: str
    title: str
    x_label: str
    y_label: str
    lines: Mapping[str, Points]
    ours: str

    @property
    def is_empty(self) -> bool:
        """Return whether no line has two points, so that there is nothing to draw."""
        return all(len(points) < 2 for points in self.lines.values())

    def markdown(self) -> str:
        """Return the line that shows the picture on a page beside it."""
        return f"![{self.title}]({self.name}.svg)"


def save(picture: Picture, folder: Path) -> None:
    """Write a picture as SVG and PNG."""
    # matplotlib takes a second to import, and commands without pictures do not need it.
    import matplotlib
    from matplotlib.figure import Figure

    # With a fixed salt, the same numbers always give the same file.
    style: Any = {"svg.hashsalt": picture.name, "font.size": _FONT, "font.family": "DejaVu Sans"}
    # An error can be 0, but logarithmic axes cannot show 0.
    lines = {
        name: [each for each in points if each[1] > 0] for name, points in picture.lines.items()
    }
    shown = replace(picture, lines={name: points for name, points in lines.items() if points})
    with matplotlib.rc_context(style):
        figure = Figure(figsize=_SIZE)
        _draw(figure.add_axes(_place(shown)), shown)
        for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            with whole_file(folder / f"{picture.name}.{kind}") as unfinished:
                figure.savefig(unfinished, format=kind, dpi=_DOTS_PER_INCH, metadata=metadata)


def _place(picture: Picture) -> tuple[float, float, float, float]:
    """Return the place of the axes in the figure: left, bottom, width and height, from 0 to 1.

    matplotlib could find it automatically, but would draw everything four times.
    """
    width, height = (size * 72 for size in _SIZE)  # points
    names = 0.62 * _FONT * max(len(name) for name in picture.lines)
    left, bottom, top = 3.3 * _FONT, 3.2 * _FONT, 3.2 * _FONT
    # Names begin this share of the axes to the right of them.
    axes = (width - left - names) / (1 + _NAMES_FROM)
    return left / width, bottom / height, axes / width, 1 - (bottom + top) / height


def _draw(axes: Any, picture: Picture) -> None:
    others = (name for name in picture.lines if name != picture.ours)
    styles = {picture.ours: _OURS, **dict(zip(others, _OTHERS, strict=False))}
    for name, points in picture.lines.items():
        # Ours is drawn on top of the others.
        axes.plot(
            *zip(*points, strict=True), zorder=3 if name == picture.ours else 2, **styles[name]
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_xlabel(picture.x_label)
    axes.set_title(f"{picture.title}\n{picture.y_label}", fontsize=_FONT, loc="left")
    axes.grid(which="major", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    _widen(axes)
    _label_ticks(axes, picture)
    _label_lines(axes, picture, styles)


def _widen(axes: Any) -> None:
    """Let the y axis span a factor of ten at least, so that noise does not look like a trend."""
    low, high = (math.log10(value) for value in axes.get_ylim())
    missing = max(0.0, 1.0 - (high - low)) / 2
    axes.set_ylim(10 ** (low - missing), 10 ** (high + missing))


def _label_ticks(axes: Any, picture: Picture) -> None:
    """Label an axis with plain numbers if it has too few powers of ten for a reader."""
    measured = sorted({x for points in picture.lines.values() for x, _ in points})
    for axis, instead in ((axes.xaxis, measured), (axes.yaxis, None)):
        low, high = axis.get_view_interval()
        if powers_between(low, high) < _FEWEST_POWERS:
            axis.set_ticks(ticks := instead or steps_between(low, high))
            axis.set_ticklabels([number(tick) for tick in ticks])


def powers_between(low: float, high: float) -> int:
    """Return how many powers of ten an axis shows.

    >>> powers_between(20, 2000), powers_between(1, 100)
    (2, 3)
    """
    return math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1


def steps_between(low: float, high: float) -> list[float]:
    """Return the values 1, 2 and 5 times a power of ten that an axis shows.

    >>> steps_between(300, 3000)
    [500.0, 1000.0, 2000.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [float(f"{step}e{power}") for power in powers for step in (1, 2, 5)]
    return [step for step in steps if low <= step <= high]


def _label_lines(axes: Any, picture: Picture, styles: Mapping[str, dict[str, Any]]) -> None:
    """Write each name to the right of its line, after a sample of the line."""
    low, high = (math.log10(value) for value in axes.get_ylim())
    left, right = (math.log10(value) for value in axes.get_xlim())
    ends = {name: points[-1] for name, points in picture.lines.items()}
    heights = {name: (math.log10(y) - low) / (high - low) for name, (_, y) in ends.items()}
    places = spread(heights, gap=1.3 * _FONT / (_SIZE[1] * 72 * 0.75))
    for name, place in places.items():
        style = styles[name]
        height = 10 ** (low + place * (high - low))
        # The sample begins a little to the right of the axes, and the name follows it.
        sample = [10 ** (right + share * (right - left)) for share in _SAMPLE]
        thin = dict(color="#aaaaaa", linewidth=0.9, zorder=1, clip_on=False)
        axes.plot([ends[name][0], sample[0]], [ends[name][1], height], **thin)
        axes.plot(sample, [height] * 3, markevery=[1], clip_on=False, zorder=4, **style)
        axes.text(
            10 ** (right + _NAMES_FROM * (right - left)),
            height,
            name,
            va="center",
            fontweight="bold" if name == picture.ours else "normal",
        )
    axes.set_xlim(10**left, 10**right)
    axes.set_ylim(10**low, 10**high)


def spread(heights: Mapping[str, float], gap: float) -> dict[str, float]:
    """Return heights from 0 to 1, moved apart by at least `gap` and not far from the given ones.

    >>> spread({"a": 0.5, "b": 0.5}, gap=0.1)
    {'a': 0.45, 'b': 0.55}
    """
    order = sorted(heights, key=heights.__getitem__)
    # Labels that touch form a group, which is centred on the mean of their given heights.
    groups: list[list[str]] = []
    for name in order:
        groups.append([name])
        while len(groups) > 1 and _top(groups[-2], heights, gap) + gap > _bottom(
            groups[-1], heights, gap
        ):
            groups[-2:] = [groups[-2] + groups[-1]]
    return {
        name: round(_bottom(group, heights, gap) + place * gap, 6)
        for group in groups
        for place, name in enumerate(group)
    }


def _bottom(group: Sequence[str], heights: Mapping[str, float], gap: float) -> float:
    middle = sum(heights[name] for name in group) / len(group)
    size = gap * (len(group) - 1)
    return max(0.0, min(middle - size / 2, _HIGHEST_NAME - size))


def _top(group: Sequence[str], heights: Mapping[str, float], gap: float) -> float:
    return _bottom(group, heights, gap) + gap * (len(group) - 1)
