"""The style of all pictures of the page. They are readable in grey and when they are small."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from talkconv.files import whole_file

# Lines differ in dash, marker and lightness, so that they also differ in grey.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#000000", "linestyle": "-", "marker": "o"},
    {"color": "#d55e00", "linestyle": "--", "marker": "s"},
    {"color": "#0072b2", "linestyle": "-.", "marker": "^"},
    {"color": "#4fae8b", "linestyle": ":", "marker": "D"},
    {"color": "#7a7a7a", "linestyle": (0, (6, 1)), "marker": "v"},
    {"color": "#e69f00", "linestyle": (0, (3, 1, 1, 1, 1, 1)), "marker": "P"},
    {"color": "#56b4e9", "linestyle": (0, (1, 2)), "marker": "X"},
    {"color": "#cc79a7", "linestyle": (0, (5, 4)), "marker": "*"},
)
_SETTINGS: dict[Any, Any] = {
    "font.size": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 2.2,
    "lines.markersize": 6,
    # With a fixed salt, the same numbers always give the same file.
    "svg.hashsalt": "talkconv",
}
_NO_DATE = {".svg": {"Date": None}, ".png": {"Software": None}}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches."""
    with mpl.rc_context(_SETTINGS):
        return Figure(figsize=(width, height), layout="constrained")


def style() -> Any:
    """Return the context in which axes are made and drawn on."""
    return mpl.rc_context(_SETTINGS)


def save(figure: Figure, path: Path) -> None:
    """Write PATH.svg and PATH.png."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with style():
        for suffix, metadata in _NO_DATE.items():
            with whole_file(path.with_name(path.name + suffix)) as unfinished:
                figure.savefig(
                    unfinished, format=suffix[1:], dpi=110, metadata=metadata, facecolor="white"
                )
