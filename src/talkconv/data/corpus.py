"""Corpus: splits of rows, and the files from which they are read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from talkconv.data.lines import Reading

# A row is a source and a target, or one line of running text.
Row = tuple[str, ...]
SPLITS = ("train", "valid", "test")


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names of splits in the order of SPLITS, all further ones after them.

    >>> in_order(["test", "test2017", "train", "valid"])
    ['train', 'valid', 'test', 'test2017']
    """
    names = list(names)
    return [*(name for name in SPLITS if name in names), *sorted(set(names) - set(SPLITS))]


@dataclass(frozen=True)
class Split:
    """The files of a split, and a function that reads its rows, one at a time."""

    files: Sequence[Path]
    rows: Callable[[Reading], Iterator[Row]]


@dataclass(frozen=True)
class Corpus:
    """Splits by name: "train", "valid" and, where they exist, "test" and further test sets."""

    splits: dict[str, Split]
    # Every n-th training pair that cleaning has left is for validation.
    valid_every: int | None = None
    # Text that identifies a corpus without files.
    identity: str = ""


def missing(folder: Path, names: Sequence[str], cure: str) -> ValueError:
    listed = "\n  ".join(names)
    return ValueError(f"{folder} must hold these files, and does not:\n  {listed}\n{cure}")
