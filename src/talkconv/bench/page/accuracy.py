"""The section about accuracy over length."""

from talkconv.bench.accuracy import LENGTHS, OURS, SCHEMES, row_key
from talkconv.bench.bars import Bar
from talkconv.bench.exactness import MOST_ERROR
from talkconv.bench.page.markdown import number, table
from talkconv.bench.page.pictures import Picture
from talkconv.bench.part import Rows

_GRADIENTS = ("output", "grad_x", "grad_left", "grad_right")


def section(rows: Rows) -> str:
    """Return the text of the section."""
    found = {n: rows[row_key(n)] for n in LENGTHS if row_key(n) in rows}
    lines = []
    for name in SCHEMES:
        cells = (f"{row['errors'][name]:.1e}" for row in found.values())
        lines.append([f"**{name}**" if name == OURS else name, *cells])
    parts = [
        "The largest error of the output as a share of the largest output; windows of up to 15 "
        "tokens a side, x of mean 1 and deviation 1. One running sum is a single prefix sum over "
        "the whole sequence in float32. The authors' code stores prefix sums and computes the "
        "edges of windows in float16.",
        table(["", *(f"n = {number(n)}" for n in found)], lines),
    ]
    absolute = {n: row["absolute"] for n, row in found.items() if "absolute" in row}
    if absolute:
        cells_of = (
            [kind, *(f"{row[kind]:.1e}" for row in absolute.values())] for kind in _GRADIENTS
        )
        parts += [
            "### Absolute errors of the operation and its gradients, float32",
            table(["", *(f"n = {number(n)}" for n in absolute)], list(cells_of)),
        ]
    return "\n\n".join(parts)


def bars(rows: Rows) -> list[Bar]:
    """Return the bar on the largest error of the operation in float32."""
    errors = [row["absolute"]["output"] for row in rows.values() if "absolute" in row]
    what = "largest error of the output in float32, at any length"
    return [Bar(what, max(errors), MOST_ERROR, at_least=False)] if errors else []


def pictures(rows: Rows) -> list[Picture]:
    """Return the errors over length."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for n in LENGTHS:
        for name, error in rows.get(row_key(n), {}).get("errors", {}).items():
            lines.setdefault(name, []).append((n, error))
    y = "largest error, share of the largest output"
    return [Picture("accuracy", "Accuracy over length", "n (tokens)", y, lines, OURS)]
