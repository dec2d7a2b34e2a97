"""The section about whole networks: training, long documents, and the longest sequences."""

from collections.abc import Callable, Iterable

from talkconv.bench import changing_shapes
from talkconv.bench.bars import Bar
from talkconv.bench.memory_reach import BUDGET
from talkconv.bench.network_part import (
    CHANGING_SHAPES,
    DOCUMENT_LENGTHS,
    TRAINING_LENGTHS,
    document_key,
    reach_key,
    training_key,
)
from talkconv.bench.network_speed import TOKENS
from talkconv.bench.networks import LABELS, OURS, SIZES_IN_WORDS
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
from talkconv.network_settings import MIXERS


def section(rows: Rows) -> str:
    """Return the text of the section."""
    training = _found(rows, training_key, TRAINING_LENGTHS)
    documents = _found(rows, document_key, DOCUMENT_LENGTHS)
    parts = [
        f"One network with each mixer: {SIZES_IN_WORDS}, float32. Self-attention is PyTorch's "
        "fused one. Most of a step are matrix products that all mixers have in common."
    ]
    if training:
        parts += [
            "### Training, tokens a second",
            f"A language model; {number(TOKENS)} tokens a batch, whatever the length n of its "
            "sequences. A step is loss, gradients and Adam.",
            _speeds(training, TOKENS),
            "### Training, peak memory in MiB",
            "Weights, optimizer and activations together, in a process of their own.",
            _memories(training),
        ]
    if documents:
        parts += [
            "### Encoding one long document, milliseconds",
            "An encoder whose windows reach to both sides.",
            _speeds(documents, None),
            "### Encoding one long document, peak memory in MiB",
            _memories(documents),
        ]
    parts += [_reach(rows), _shapes(rows)]
    return "\n\n".join(part for part in parts if part)


def _found(rows: Rows, key: Callable[[int], str], lengths: Iterable[int]) -> dict[int, RowResult]:
    return {n: rows[key(n)] for n in lengths if key(n) in rows}


def _headings(found: dict[int, RowResult]) -> list[str]:
    return ["", *(f"n = {number(n)}" for n in found)]


def _name(mixer: str) -> str:
    return f"**{LABELS[mixer]}**" if mixer == OURS else LABELS[mixer]


def _labelled(found: dict[int, RowResult]) -> dict[str, RowResult]:
    """Return rows under their titles, with the names of mixers as tables show them."""
    return {
        f"n = {number(n)}": {
            kind: {LABELS.get(name, name): value for name, value in row[kind].items()}
            for kind in ("timings", "absent")
        }
        for n, row in found.items()
    }


def _speeds(found: dict[int, RowResult], scale: float | None) -> str:
    lines = []
    for mixer in MIXERS:
        timings = [timings_of(row).get(mixer) for row in found.values()]
        cells = [NOTHING if each is None else with_spread(each, scale) for each in timings]
        lines.append([_name(mixer), *cells])
    said = (said_overlaps(_labelled(found)), absences(_labelled(found)))
    return "\n\n".join(part for part in (table(_headings(found), lines), *said) if part)


def _memories(found: dict[int, RowResult]) -> str:
    lines = [
        [_name(mixer), *(mebibytes(row["bytes"].get(mixer)) for row in found.values())]
        for mixer in MIXERS
    ]
    return table(_headings(found), lines)


def _reach(rows: Rows) -> str:
    lines = []
    for mixer in MIXERS:
        row = rows.get(reach_key(mixer))
        if row is not None and row["tokens"] is not None:
            how = "tried" if row["tried"] else "extrapolated from shorter ones"
            lines.append([_name(mixer), number(row["tokens"]), how])
    if not lines:
        return ""
    return (
        f"### How long one sequence can be in training before {BUDGET >> 30} GiB are full\n\n"
        + table(["", "tokens", ""], lines)
    )


def _shapes(rows: Rows) -> str:
    row = rows.get(CHANGING_SHAPES)
    if row is None:
        return ""
    lines = [[_name(mixer), mebibytes(row["bytes"][mixer])] for mixer in MIXERS]
    return (
        f"### Peak memory of training with changing shapes, MiB\n\n{changing_shapes.STEPS} "
        f"batches of {number(changing_shapes.TOKENS)} tokens whose lengths change, with the "
        "network of the Multi30k recipe, each mixer in a process of its own.\n\n"
        + table(["", "peak of the process"], lines)
    )


def bars(rows: Rows) -> list[Bar]:
    """Return the bar on the memory of training."""
    row = rows.get(CHANGING_SHAPES)
    bar = None if row is None else changing_shapes.bar_of(row["bytes"])
    return [] if bar is None else [bar]


def pictures(rows: Rows) -> list[Picture]:
    """Return training speed and encoding of documents over length."""
    training = _found(rows, training_key, TRAINING_LENGTHS)
    documents = _found(rows, document_key, DOCUMENT_LENGTHS)
    ours = LABELS[OURS]

    def lines(
        found: dict[int, RowResult], value: Callable[[RowResult, str], float | None]
    ) -> dict[str, list[tuple[float, float]]]:
        made: dict[str, list[tuple[float, float]]] = {}
        for n, row in found.items():
            for mixer in row["timings"]:
                y = value(row, mixer)
                if y:
                    made.setdefault(LABELS[mixer], []).append((n, y))
        return made

    def rate(row: RowResult, mixer: str) -> float:
        return float(TOKENS / row["timings"][mixer]["median"])

    def seconds(row: RowResult, mixer: str) -> float:
        return float(row["timings"][mixer]["median"])

    def size(row: RowResult, mixer: str) -> float | None:
        found: int | None = row["bytes"].get(mixer)
        return None if found is None else found / 2**20

    x = "n (tokens)"
    return [
        Picture(
            "training", "Training a network", x, "tokens a second", lines(training, rate), ours
        ),
        Picture(
            "documents", "Encoding one document", x, "seconds", lines(documents, seconds), ours
        ),
        Picture(
            "documents-memory", "Encoding one document", x, "peak MiB", lines(documents, size), ours
        ),
    ]
