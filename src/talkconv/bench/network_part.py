"""The part about whole networks: training, long documents, and the longest sequences."""

import functools
from collections.abc import Callable, Mapping

from talkconv.bench import changing_shapes, memory_reach, network_speed
from talkconv.bench.measure import FULL, QUICK, Pace
from talkconv.bench.mixer_correctness import check_mixers
from talkconv.bench.part import Part, Row, Rows, next_shorter
from talkconv.bench.side_by_side import RowResult
from talkconv.network_settings import MIXERS

# The lengths, and about how long a row of that length takes on two cores.
TRAINING_LENGTHS = {32: 115, 128: 115, 512: 115, 2048: 120, 8192: 140}
QUICK_TRAINING_LENGTHS = {512: 16}
QUICK_TRAINING_MIXERS = ("talk", "attention")
DOCUMENT_LENGTHS = {400: 15, 1600: 20, 6400: 40, 16_384: 90, 65_536: 120}
QUICK_DOCUMENT_LENGTHS = {1600: 6}
CHANGING_SHAPES = "training, changing shapes"

# measures one length, given the pace and the row of the next shorter length
Measure = Callable[[int, Pace, tuple[int, RowResult] | None], RowResult]


def training_key(length: int) -> str:
    """Return the key of a row of training steps."""
    return f"training, n = {length}"


def document_key(length: int) -> str:
    """Return the key of a row of long documents."""
    return f"encoding, n = {length}"


def reach_key(mixer: str) -> str:
    """Return the key of the row that says how long sequences can be with a mixer."""
    return f"8 GiB, {mixer}"


def networks_part(quick: bool) -> Part:
    """Return all measurements of networks as a part."""
    pace = QUICK if quick else FULL
    training = QUICK_TRAINING_LENGTHS if quick else TRAINING_LENGTHS
    documents = QUICK_DOCUMENT_LENGTHS if quick else DOCUMENT_LENGTHS
    mixers = QUICK_TRAINING_MIXERS if quick else MIXERS
    train = functools.partial(network_speed.measure_training, mixers=mixers)
    rows = [
        *_rows(training, training_key, train, pace),
        *_rows(documents, document_key, network_speed.measure_documents, pace),
    ]
    if not quick:
        rows += [
            Row(reach_key(mixer), functools.partial(_reach, mixer=mixer, pace=pace), 50)
            for mixer in MIXERS
        ]
        rows.append(Row(CHANGING_SHAPES, _changing_shapes, 200))
    return Part("networks", rows, check_mixers)


def _rows(
    lengths: Mapping[int, int], key: Callable[[int], str], measure: Measure, pace: Pace
) -> list[Row]:
    def run(rows: Rows, length: int) -> RowResult:
        return measure(length, pace, next_shorter(rows, key, lengths, length))

    return [
        Row(key(length), functools.partial(run, length=length), seconds)
        for length, seconds in lengths.items()
    ]


def _reach(rows: Rows, mixer: str, pace: Pace) -> RowResult:
    return memory_reach.reach(mixer, pace)


def _changing_shapes(rows: Rows) -> RowResult:
    return {"bytes": changing_shapes.peaks()}
