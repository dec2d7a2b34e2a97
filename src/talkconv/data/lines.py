"""Reads lines of text, in the same way everywhere: UTF-8, gzipped or not, with any line ends.

A line ends at a line feed and nowhere else, so that aligned files stay aligned. A carriage return
before it belongs to the end of the line, and one elsewhere belongs to the text. A byte order mark
at the beginning is removed.
"""

import gzip
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

WINDOWS = "Windows line ends removed"
_GZIP = b"\x1f\x8b"
# the first bytes of other packed files, which are not accepted
_PACKED = {
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
_LONGEST_BEGINNING = 6


def _ignore(_: int) -> None:
    return None


@dataclass
class Reading:
    """The reports of a reader while it reads: the bytes read so far, and its corrections."""

    advance: Callable[[int], None] = _ignore
    notes: Counter[str] = field(default_factory=Counter)


def find(folder: Path, *names: str) -> Path | None:
    """Return the first of `names` that is in `folder`, plain or gzipped."""
    candidates = (folder / f"{name}{end}" for name in names for end in ("", ".gz"))
    return next((path for path in candidates if path.is_file()), None)


def find_below(folder: Path, name: str) -> Path | None:
    """Return the file `name`, plain or gzipped, in `folder` or anywhere below it."""
    return find(folder, name) or next(
        (path for end in ("", ".gz") for path in sorted(folder.rglob(name + end))), None
    )


def read_lines(
    path: Path, reading: Reading | None = None, *, may_be_empty: bool = False
) -> Iterator[str]:
    """Yield the lines of a text file without their ends; the file may be gzipped.

    If the file is not such text, a ValueError says what is wrong, and in which line.
    """
    try:
        with path.open("rb") as raw:
            yield from _lines(path, raw, reading or Reading(), may_be_empty)
    except FileNotFoundError:
        raise ValueError(f"{path} must be a text file, and does not exist") from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise ValueError(
            f"{path} must be a whole gzip file, got {error}: download it again"
        ) from error


def _lines(path: Path, raw: BinaryIO, reading: Reading, may_be_empty: bool) -> Iterator[str]:
    beginning = raw.read(_LONGEST_BEGINNING)
    raw.seek(0)
    for sign, kind in _PACKED.items():
        if beginning.startswith(sign):
            raise ValueError(f"{path} must be text, plain or gzipped, got {kind}: unpack it first")
    packed = beginning.startswith(_GZIP) or path.suffix == ".gz"
    stream: Iterable[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw
    reached = number = 0
    for number, line in enumerate(decoded(stream, str(path), reading), start=1):
        if number % 1_000 == 0:
            reading.advance(raw.tell() - reached)
            reached = raw.tell()
        yield line
    reading.advance(raw.tell() - reached)
    if not number and not may_be_empty:
        raise ValueError(f"{path} must hold text, and is empty")


def decoded(lines: Iterable[bytes], name: str, reading: Reading | None = None) -> Iterator[str]:
    """Decode the lines of a binary file, and yield them without their ends.

    >>> list(decoded([b"one\\r\\n", b"two\\rstill two"], "standard input"))
    ['one', 'two\\rstill two']
    """
    reading = reading or Reading()
    for number, line in enumerate(lines, start=1):
        text = line.removesuffix(b"\n")
        if text.endswith(b"\r"):
            text = text.rstrip(b"\r")
            reading.notes[WINDOWS] += 1
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}:{number} must be UTF-8, got {text[error.start : error.start + 4]!r} at "
                f"byte {error.start + 1} of the line: find its encoding and convert it, for "
                f"example iconv -f latin1 -t utf-8 {Path(name).name} > converted"
            ) from error
        yield decoded.removeprefix("\ufeff") if number == 1 else decoded


def aligned(sides: Sequence[Iterator[str]], names: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield pairs of lines of two files, which must have equally many."""
    for number, (source, target) in enumerate(zip_longest(*sides), start=1):
        if source is None or target is None:
            short, long = names if source is None else reversed(names)
            raise ValueError(
                f"{names[0]} and {names[1]} must have equally many lines: {short.name} ends "
                f"after line {number - 1}, {long.name} goes on. Line n of one must be the "
                f"translation or summary of line n of the other"
            )
        yield source, target


def read_pairs(source: Path, target: Path, reading: Reading) -> Iterator[tuple[str, str]]:
    """Yield pairs of lines of two files that are aligned line by line."""
    paths = (source, target)
    return aligned([read_lines(path, reading) for path in paths], paths)


def read_columns(path: Path, reading: Reading) -> Iterator[tuple[str, str]]:
    """Yield the two columns of each line of a file, which a tab separates.

    Quotation marks have no meaning there. An empty line is a pair of empty texts.
    """
    for number, line in enumerate(read_lines(path, reading), start=1):
        columns = line.split("\t") if line else ["", ""]
        if len(columns) != 2:
            raise ValueError(
                f"{path}:{number} must have two columns, a source and a target with one tab "
                f"between them, got {len(columns)}: keep two of them, for example with "
                f"cut -f 1,2 {path.name} > two_columns.tsv"
            )
        yield columns[0], columns[1]
