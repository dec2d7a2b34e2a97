"""What a part of `talkconv bench all` is: a check, and rows that are measured one by one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from talkconv.bench.correctness import Finding
from talkconv.bench.side_by_side import RowResult

# in the order in which parts are measured and stand on the page
PART_NAMES = ("throughput", "complexity", "networks", "generation", "accuracy")

# the rows of a part by key, as far as they are measured
Rows = Mapping[str, RowResult]


@dataclass(frozen=True)
class Row:
    """One measurement. Its result is kept under its key as soon as it is there."""

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
