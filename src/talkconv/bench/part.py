"""The parts of `talkconv bench all`. Each has a check, and rows that are measured one by one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from talkconv.bench.correctness import Finding
from talkconv.bench.side_by_side import RowResult

# the parts in the order of the measurements and of the page
PART_NAMES = ("throughput", "complexity", "networks", "generation", "accuracy")

# the rows of a part that are measured already, by key
Rows = Mapping[str, RowResult]


@dataclass(frozen=True)
class Row:
    """One measurement. Its result is saved under its key as soon as it is measured."""

    key: str
    # gets the rows that were measured before
    measure: Callable[[Rows], RowResult]
    # about how long it takes on two cores, for the progress bar
    seconds: float


@dataclass(frozen=True)
class Part:
    """One section of the page."""

    name: str
    rows: Sequence[Row]
    # compares what will be measured with its definition
    check: Callable[[], list[Finding]]


def next_shorter(
    rows: Rows, key: Callable[[int], str], lengths: Iterable[int], n: int
) -> tuple[int, RowResult] | None:
    """Return the longest length below n that has a row already, and that row."""
    before = [length for length in lengths if length < n and key(length) in rows]
    return (max(before), rows[key(max(before))]) if before else None
