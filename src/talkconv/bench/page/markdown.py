"""Writes tables in Markdown, and the numbers in them."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from talkconv.bench.bars import Bar
from talkconv.bench.measure import Timing
from talkconv.bench.side_by_side import RowResult

NOTHING = "–"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the first column is text, the others are numbers.

    >>> print(table(["", "n"], [["TaLK", "10"]]))
    | | n |
    |---|--:|
    | TaLK | 10 |
    """

    def line(cells: Sequence[str]) -> str:
        return ("| " + " | ".join(cells) + " |").replace("|  |", "| |")

    rule = "|---|" + "--:|" * (len(headings) - 1)
    return "\n".join([line(headings), rule, *(line(row) for row in rows)])


def number(value: float) -> str:
    """Return a number with three significant digits and spaces between thousands.

    >>> number(0.01234), number(12.34), number(1234567.8)
    ('0.0123', '12.3', '1 234 568')
    """
    if value >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def with_spread(timing: Timing, scale: float | None = None) -> str:
    """Return a median with its quartiles, in milliseconds or as a rate `scale` per second.

    >>> with_spread(Timing(0.5, 0.4, 0.8, 9), scale=1)
    '2 (1.25–2.5)'
    """
    if timing.runs == 1:
        return f"{number(_value(timing.median, scale))} (one run)"
    low, high = sorted((_value(timing.low, scale), _value(timing.high, scale)))
    return f"{number(_value(timing.median, scale))} ({number(low)}–{number(high)})"


def _value(seconds: float, scale: float | None) -> float:
    return seconds * 1e3 if scale is None else scale / seconds


def mebibytes(value: int | None) -> str:
    """Return bytes as MiB.

    >>> mebibytes(3 << 20), mebibytes(None)
    ('3', '–')
    """
    return NOTHING if value is None else number(value / 2**20)


def timings_of(row: RowResult) -> dict[str, Timing]:
    """Return the timings of a row."""
    return {name: Timing(**timing) for name, timing in row.get("timings", {}).items()}


def overlaps(timings: Mapping[str, Timing]) -> list[tuple[str, str]]:
    """Return pairs of neighbours in the order of medians whose quartiles overlap."""
    order = sorted(timings, key=lambda name: timings[name].median)
    return [(a, b) for a, b in itertools.pairwise(order) if timings[a].overlaps(timings[b])]


def said_overlaps(rows: Mapping[str, RowResult]) -> str:
    """Return a sentence for each row with neighbours whose quartiles overlap, or ""."""
    lines = []
    for title, row in rows.items():
        pairs = overlaps(timings_of(row))
        if pairs:
            listed = "; ".join(f"{a} and {b}" for a, b in pairs)
            lines.append(f"- {title}: the quartiles of these overlap: {listed}.")
    return "\n".join(lines)


def absences(rows: Mapping[str, RowResult]) -> str:
    """Return a sentence for each row that left contestants out, with the reasons, or ""."""
    lines = []
    for title, row in rows.items():
        reasons: dict[str, list[str]] = {}
        for name, why in row.get("absent", {}).items():
            reasons.setdefault(why, []).append(name)
        if reasons:
            listed = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
            lines.append(f"- {title}: not measured: {listed}.")
    return "\n".join(lines)


def bars_table(bars: Iterable[Bar]) -> str:
    """Return bars as a table, with "met" or "not met" in the last column."""
    rows = [[bar.what, bar.required, number(bar.found), bar.verdict] for bar in bars]
    return table(["bar", "required", "found", ""], rows)
