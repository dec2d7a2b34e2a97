"""Lines of text files, as people have them: gzipped or not, with whatever line ends."""

import gzip
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

WINDOWS = "Windows line ends removed"


def _ignore(_: int) -> None:
    return None


@dataclass
class Reading:
    """What a reader tells while it reads: how far it came, and what it had to set right."""

    advance: Callable[[int], None] = _ignore
    notes: Counter[str] = field(default_factory=Counter)


def find(folder: Path, *names: str) -> Path | None:
    """The first of `names` that stands in `folder`, as it is or gzipped."""
    candidates = (folder / f"{name}{end}" for name in names for end in ("", ".gz"))
    return next((path for path in candidates if path.is_file()), None)


def find_below(folder: Path, name: str) -> Path | None:
    """`name`, as it is or gzipped, in `folder` or anywhere below it."""
    return find(folder, name) or next(
        (path for end in ("", ".gz") for path in sorted(folder.rglob(name + end))), None
    )


def read_lines(path: Path, reading: Reading) -> Iterator[str]:
    """The lines of a file without their ends; a ValueError names the line that is not UTF-8."""
    try:
        with path.open("rb") as raw:
            yield from _lines(path, raw, reading)
    except FileNotFoundError:
        raise ValueError(f"{path} must be a text file, and does not exist") from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path} must be a whole gzip file, got {error}: fetch it anew") from error


def _lines(path: Path, raw: BinaryIO, reading: Reading) -> Iterator[str]:
    stream = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
    reached = number = 0
    for number, line in enumerate(stream, start=1):
        if number % 1_000 == 0:
            reading.advance(raw.tell() - reached)
            reached = raw.tell()
        yield decode(line, path, number, reading)
    reading.advance(raw.tell() - reached)
    if not number:
        raise ValueError(f"{path} must hold text, and is empty")


def decode(line: bytes, path: Path, number: int, reading: Reading) -> str:
    """One line as text, without its end and without a byte order mark."""
    line = line.removesuffix(b"\n")
    if line.endswith(b"\r"):
        line = line.rstrip(b"\r")
        reading.notes[WINDOWS] += 1
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}:{number} must be UTF-8, got {line[error.start : error.start + 4]!r} at byte "
            f"{error.start + 1} of the line: find its encoding and convert it, for example "
            f"iconv -f latin1 -t utf-8 {path.name} > converted"
        ) from error
    return text.removeprefix("\ufeff") if number == 1 else text


def aligned(sides: Sequence[Iterator[str]], names: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Pairs of lines of two files that must have equally many."""
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
    """Pairs of lines of two files that are aligned line by line."""
    paths = (source, target)
    return aligned([read_lines(path, reading) for path in paths], paths)
