"""The section about generation: translation, and steps late in a text."""

from talkconv.bench.bars import Bar
from talkconv.bench.decoding_steps import MIXERS, SIZES_IN_WORDS
from talkconv.bench.engines import OURS
from talkconv.bench.generation_part import (
    AFTER,
    SEARCHES,
    SOURCE,
    TARGET,
    search_key,
    steps_key,
)
from talkconv.bench.networks import LABELS
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


def section(rows: Rows) -> str:
    """Return the text of the section."""
    parts = []
    searches = {
        f"beams {beams}, batch {batch}": (batch, rows[search_key(beams, batch)])
        for beams, batch in SEARCHES
        if search_key(beams, batch) in rows
    }
    if searches:
        parts += [
            "### Translation",
            f"Networks of the IWSLT size with random weights, {SOURCE} tokens in and {TARGET} out. "
            '"talkconv" runs in PyTorch, "ONNX" the same network as exported. '
            '"talkconv, self-attention" is the same network with self-attention and a cache. '
            "MarianMT and CTranslate2 run a Transformer of that size.",
            _translations(searches),
        ]
    steps = {n: rows[steps_key(n)] for n in AFTER if steps_key(n) in rows}
    if steps:
        parts += ["### One step of a language model after n tokens", _steps(steps)]
    return "\n\n".join(parts)


def _translations(searches: dict[str, tuple[int, RowResult]]) -> str:
    names = list(dict.fromkeys(name for _, row in searches.values() for name in row["timings"]))
    titles = {title: row for title, (_, row) in searches.items()}

    def rates(unit: int) -> str:
        lines = []
        for name in names:
            cells = []
            for batch, row in searches.values():
                timing = timings_of(row).get(name)
                cells.append(NOTHING if timing is None else with_spread(timing, batch * unit))
            lines.append([f"**{name}**" if name == OURS else name, *cells])
        return table(["", *searches], lines)

    said = (said_overlaps(titles), absences(titles))
    parts = ("Sentences a second:", rates(1), "Tokens a second:", rates(TARGET), *said)
    return "\n\n".join(part for part in parts if part)


def _steps(steps: dict[int, RowResult]) -> str:
    lines = []
    for mixer in MIXERS:
        times = (with_spread(timings_of(row)[mixer]) for row in steps.values())
        sizes = (mebibytes(row["bytes"][mixer]) for row in steps.values())
        lines += [
            [f"{LABELS[mixer]}, milliseconds", *times],
            [f"{LABELS[mixer]}, cache in MiB", *sizes],
        ]
    return f"{SIZES_IN_WORDS}.\n\n" + table(["", *(f"n = {number(n)}" for n in steps)], lines)


def bars(rows: Rows) -> list[Bar]:
    """Return no bars: this part has none."""
    return []


def pictures(rows: Rows) -> list[Picture]:
    """Return the memory and the time of a step over the tokens before it."""
    sizes: dict[str, list[tuple[float, float]]] = {}
    times: dict[str, list[tuple[float, float]]] = {}
    for n in AFTER:
        row = rows.get(steps_key(n), {"timings": {}})
        for mixer, timing in timings_of(row).items():
            times.setdefault(LABELS[mixer], []).append((n, timing.median * 1e3))
            sizes.setdefault(LABELS[mixer], []).append((n, row["bytes"][mixer] / 2**20))
    title, x, ours = "Generating late in a text", "tokens before", LABELS["talk"]
    return [
        Picture("steps", title, x, "milliseconds a step", times, ours),
        Picture("steps-memory", title, x, "cache, MiB", sizes, ours),
    ]
