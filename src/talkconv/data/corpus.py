"""What every corpus is to preparation: splits of rows, and the files that they come from."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from talkconv.data.lines import Reading

# source and target, or one line of running text
Row = tuple[str, ...]
SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Split:
    """Rows that are read anew with each call of `rows`, one at a time."""

    files: Sequence[Path]
    rows: Callable[[Reading], Iterator[Row]]


@dataclass(frozen=True)
class Corpus:
    """Splits by name: "train", "valid" and, if there is one, "test"."""

    splits: dict[str, Split]
    # take every n-th pair that cleaning left of the training data for validation
    valid_every: int | None = None
    # stands for the files where there are none
    identity: str = ""


def missing(folder: Path, names: Sequence[str], cure: str) -> ValueError:
    listed = "\n  ".join(names)
    return ValueError(f"{folder} must hold these files, and does not:\n  {listed}\n{cure}")
