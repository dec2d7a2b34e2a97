"""The section about throughput and memory, with the paper's own figures beside ours."""

import functools

import torch

from talkconv.bench.bars import Bar
from talkconv.bench.inputs import DIRECTIONS, FORWARD, TRAINING
from talkconv.bench.measure import Timing
from talkconv.bench.methods import FUSED, METHODS, OURS, PLAIN
from talkconv.bench.op import SPEEDUP
from talkconv.bench.page import paper
from talkconv.bench.page.markdown import (
    NOTHING,
    absences,
    mebibytes,
    number,
    said_overlaps,
    table,
    timings_of,
    with_spread,
)
from talkconv.bench.page.pictures import Picture
from talkconv.bench.part import Rows
from talkconv.bench.side_by_side import RowResult
from talkconv.bench.throughput import LENGTHS, row_key

DTYPES = (torch.float32, torch.bfloat16)
# Pictures have one line for these, and one for the fastest form of every other family.
_EACH_FORM = "self-attention"


def section(rows: Rows) -> str:
    """Return the text of the section."""
    parts = [
        "Batch 10, d 1 024, 16 heads, windows of up to 31 tokens a side; iterations a second, "
        "medians with quartiles. Peak memory is what a run takes beyond its input, in a process of "
        "its own. A large output of TaLK lives in memory that an earlier one left behind, as in "
        "every network that runs more than once.",
        f"### Beside the paper ({paper.HARDWARE})",
        _beside_the_paper(rows),
    ]
    for dtype in DTYPES:
        for direction in DIRECTIONS:
            found = rows_by_length(rows, direction, dtype)
            if found:
                parts += _tables(found, f"{direction}, {str(dtype).removeprefix('torch.')}")
    return "\n\n".join(part for part in parts if part)


def rows_by_length(rows: Rows, direction: str, dtype: torch.dtype) -> dict[int, RowResult]:
    """Return the rows of one direction and dtype that were measured, by length."""
    key = functools.partial(row_key, direction, dtype)
    return {n: rows[key(n)] for n in LENGTHS if key(n) in rows}


def _tables(found: dict[int, RowResult], title: str) -> list[str]:
    headings = ["", *(f"n = {number(n)}" for n in found)]
    speeds, memories = [], []
    for name in METHODS:
        cells = [_speed(row, name) for row in found.values()]
        if any(cell != NOTHING for cell in cells):
            speeds.append([_bold(name), *cells])
            memories.append([_bold(name), *(_memory(row, name) for row in found.values())])
    titled = {f"n = {number(n)}": row for n, row in found.items()}
    return [
        f"### Iterations a second: {title}",
        table(headings, speeds),
        said_overlaps(titled),
        f"### Peak memory beyond the input: {title}",
        "MiB, and how many times less than plain self-attention.",
        table(headings, memories),
        absences(titled),
    ]


def _bold(name: str) -> str:
    return f"**{name}**" if name == OURS else name


def _speed(row: RowResult, name: str) -> str:
    timing = timings_of(row).get(name)
    return NOTHING if timing is None else with_spread(timing, scale=1)


def _memory(row: RowResult, name: str) -> str:
    size, attention = row["bytes"].get(name), row["bytes"].get(PLAIN)
    if not size:
        return NOTHING
    ratio = f" ({number(attention / size)}×)" if attention and name != PLAIN else ""
    return mebibytes(size) + ratio


def _beside_the_paper(rows: Rows) -> str:
    """Return how TaLK compares with the paper's other methods, as ratios, there and here."""
    found = rows_by_length(rows, FORWARD, torch.float32)
    lines = []
    for place, n in enumerate(paper.LENGTHS):
        if n not in found:
            continue
        timings, sizes = timings_of(found[n]), found[n]["bytes"]
        cells = [number(n)]
        for family in ("self-attention", "DynamicConv k=3", "DynamicConv k=31"):
            theirs, talk = paper.ITERATIONS[family][place], paper.ITERATIONS["TaLK"][place]
            name = form_in_the_paper(family, n)
            cells += [
                NOTHING if theirs is None or talk is None else number(talk / theirs),
                _ratio(timings.get(name), timings.get(OURS)),
            ]
        here = (
            number(sizes[PLAIN] / sizes[OURS]) if sizes.get(PLAIN) and sizes.get(OURS) else NOTHING
        )
        lines.append([*cells, number(paper.MEMORY["TaLK"][place]), here])
    pairs = ("self-attention", "DynamicConv k=3", "DynamicConv k=31", "memory of self-attention")
    headings = ["n", *(f"{pair}, {who}" for pair in pairs for who in ("paper", "here"))]
    return (
        "How many times faster TaLK is than each method, and how many times less memory it takes. "
        "As in the paper, self-attention is the plain one, and DynamicConv uses band matrices up "
        f"to {paper.BAND_UP_TO} tokens and unfolds longer inputs.\n\n" + table(headings, lines)
    )


def form_in_the_paper(family: str, n: int) -> str:
    """Return the name of the method that the paper measured at a length.

    >>> form_in_the_paper("DynamicConv k=3", 1000)
    'DynamicConv k=3, unfold'
    """
    if family == "self-attention":
        return PLAIN
    return f"{family}, {'band' if n <= paper.BAND_UP_TO else 'unfold'}"


def _ratio(other: Timing | None, ours: Timing | None) -> str:
    return NOTHING if other is None or ours is None else number(other.median / ours.median)


def bars(rows: Rows) -> list[Bar]:
    """Return the bars against fused attention that this part measures."""
    found = []
    for direction, limits in SPEEDUP.items():
        for n, limit in limits.items():
            row = rows.get(row_key(direction, torch.float32, n), {})
            timings = timings_of(row)
            if OURS in timings and FUSED in timings:
                ratio = timings[FUSED].median / timings[OURS].median
                what = f"{direction}, n = {number(n)}: times faster than fused attention"
                found.append(Bar(what, ratio, limit, at_least=True))
    return found


def pictures(rows: Rows) -> list[Picture]:
    """Return throughput and memory over length."""
    forward = rows_by_length(rows, FORWARD, torch.float32)
    training = rows_by_length(rows, TRAINING, torch.float32)
    title = "Encoding a batch of 10"
    return [
        _speed_picture("throughput", title, forward),
        _speed_picture("throughput-training", f"{title}, with gradients", training),
        _memory_picture("memory", title, forward),
        _memory_picture("memory-training", f"{title}, with gradients", training),
    ]


def _speed_picture(name: str, title: str, found: dict[int, RowResult]) -> Picture:
    lines: dict[str, list[tuple[float, float]]] = {}
    for n, row in found.items():
        best: dict[str, float] = {}
        for method, timing in timings_of(row).items():
            line = _line_of(method)
            best[line] = max(best.get(line, 0), 1 / timing.median)
        for line, rate in best.items():
            lines.setdefault(line, []).append((n, rate))
    return Picture(name, title, "n (tokens)", "iterations a second", lines, OURS)


def _memory_picture(name: str, title: str, found: dict[int, RowResult]) -> Picture:
    lines: dict[str, list[tuple[float, float]]] = {}
    for n, row in found.items():
        best: dict[str, float] = {}
        for method, size in row["bytes"].items():
            if size:
                line = _line_of(method)
                best[line] = min(best.get(line, float("inf")), size / 2**20)
        for line, size in best.items():
            lines.setdefault(line, []).append((n, size))
    return Picture(name, title, "n (tokens)", "peak memory beyond the input, MiB", lines, OURS)


def _line_of(method: str) -> str:
    family = METHODS[method].family if method in METHODS else method
    return method if family == _EACH_FORM else family
