"""What every corpus is to preparation: splits of rows, and the files that they come from."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from talkconv.data.lines import Reading

# source and target, or one line of running text
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
    """Rows that are read anew with each call of `rows`, one at a time."""

    files: Sequence[Path]
    rows: Callable[[Reading], Iterator[Row]]


@dataclass(frozen=True)
class Corpus:
    """Splits by name: "train", "valid" and, where they exist, "test" and further test sets."""

    splits: dict[str, Split]
    # take every n-th pair that cleaning left of the training data for validation
    valid_every: int | None = None
    # stands for the files where there are none
    identity: str = ""


def missing(folder: Path, names: Sequence[str], cure: str) -> ValueError:
    listed = "\n  ".join(names)
    return ValueError(f"{folder} must hold these files, and does not:\n  {listed}\n{cure}")
