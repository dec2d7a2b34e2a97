"""The section about complexity: fitted exponents beside the paper's formulas."""

from talkconv.bench.bars import Bar
from talkconv.bench.complexity import AXES, LAYERS, bars_of, row_key
from talkconv.bench.methods import OURS
from talkconv.bench.page.markdown import NOTHING, table
from talkconv.bench.page.pictures import Picture
from talkconv.bench.part import Rows

_X_LABELS = dict(n="n (tokens)", window="window or kernel (tokens)", d="d (channels)")


def section(rows: Rows) -> str:
    """Return the text of the section."""
    lines = []
    for layer in LAYERS:
        cells = []
        for axis in AXES:
            row = rows.get(row_key(layer.name, axis))
            expected = layer.exponents.get(axis)
            if row is None or expected is None:
                cells.append(NOTHING)
            else:
                cells.append(f"{row['exponent']:.2f} ± {row['error']:.2f} ({expected})")
        if any(cell != NOTHING for cell in cells):
            name = f"**{layer.name}**" if layer.name == OURS else layer.name
            lines.append([name, f"O({layer.formula})", *cells])
    return (
        "The exponent of a forward's time over length, window and width: the slope of a line "
        "through at least five points on logarithmic axes, with its standard error, and in "
        "brackets the exponent of the paper's formula. All points of a line take turns.\n\n"
        + table(["layer", "complexity", "over n", "over the window", "over d"], lines)
    )


def bars(rows: Rows) -> list[Bar]:
    """Return the bars on the exponents."""
    return bars_of(rows)


def pictures(rows: Rows) -> list[Picture]:
    """Return one picture an axis: time relative to the first point of each line."""
    found = []
    for axis in AXES:
        lines = {}
        for layer in LAYERS:
            row = rows.get(row_key(layer.name, axis))
            if row is not None:
                times = {int(key): each["median"] for key, each in row["timings"].items()}
                sizes = [2 * n + 1 if axis == "window" else n for n in times]
                first = next(iter(times.values()))
                values = (time / first for time in times.values())
                lines[layer.name] = list(zip(sizes, values, strict=True))
        y_label = "time, as a multiple of the first point"
        x_label = _X_LABELS[axis]
        title = f"How time grows with {axis}"
        found.append(Picture(f"complexity-{axis}", title, x_label, y_label, lines, OURS))
    return found
