"""Reads the user's own text: aligned files, summaries, running text; and WikiText."""

import re
from collections.abc import Iterator
from pathlib import Path

from talkconv.data.corpus import Corpus, Row, Split, missing
from talkconv.data.data_settings import DataSettings
from talkconv.data.lines import Reading, find, read_columns, read_lines, read_pairs

# the names that people give to the files of a split
_STEMS = {"train": ("train",), "valid": ("valid", "val", "dev"), "test": ("test",)}
# more test sets, each a split of its own: test2017.de and test2017.en
_MORE_TESTS = re.compile(r"(test[\w-]+)\.")


def pairs(raw: Path, settings: DataSettings) -> Corpus:
    """Read train.de and train.en, valid.de and valid.en, test.de and test.en (or .source, .target).

    A file of two columns, train.tsv, can replace two files. There may be more test sets in the
    folder, such as test2017.de and test2017.en.
    """
    return _two_files(raw, [(settings.source_lang,), (settings.target_lang,)])


def summaries(raw: Path, settings: DataSettings) -> Corpus:
    """Read train.source and train.summary (or .target), or train.tsv, and so on."""
    return _two_files(raw, [("source",), ("summary", "target")])


def text(raw: Path, settings: DataSettings) -> Corpus:
    """Read train.txt, valid.txt, test.txt."""
    return _one_file(raw, "{}.txt")


def wikitext(raw: Path, settings: DataSettings) -> Corpus:
    """Read wiki.train.tokens and so on, as published, or the names of running text."""
    return _one_file(raw, "wiki.{}.tokens", "{}.txt")


def _two_files(raw: Path, ends: list[tuple[str, ...]]) -> Corpus:
    if ends[0] == ends[1]:
        ends = [("source",), ("target",)]
    splits, absent = {}, []
    all_ends = [f".{end}" for side in (*ends, ("tsv",)) for end in side]
    for split, stems in _stems(raw, all_ends).items():
        names = [[f"{stem}.{end}" for stem in stems for end in side] for side in ends]
        source, target = (find(raw, *side) for side in names)
        table = find(raw, *(f"{stem}.tsv" for stem in stems))
        other = source or target
        if table and other:
            raise ValueError(
                f"{raw} must have one text of {split}, got {table.name} and {other.name}: "
                "move one of them away"
            )
        if table:
            splits[split] = _table_split(table)
        elif source and target:
            splits[split] = _pair_split(source, target)
        # A test set may be missing, but half of one is a mistake.
        elif not split.startswith("test") or source or target:
            absent += [
                side[0] for side, path in zip(names, (source, target), strict=True) if not path
            ]
    if absent:
        cure = "Each may be gzipped (.gz), and one file of two columns, such as train.tsv, "
        raise missing(raw, absent, cure + "can take the place of two.")
    return Corpus(splits)


def _stems(raw: Path, ends: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the names that the files of each split may have, further test sets last."""
    more = set()
    for path in raw.iterdir():
        found = _MORE_TESTS.match(path.name)
        if found and path.name.removesuffix(".gz")[found.end() - 1 :] in ends:
            more.add(found[1])
    return _STEMS | {stem: (stem,) for stem in sorted(more)}


def _pair_split(source: Path, target: Path) -> Split:
    return Split([source, target], lambda reading: read_pairs(source, target, reading))


def _table_split(table: Path) -> Split:
    return Split([table], lambda reading: read_columns(table, reading))


def _one_file(raw: Path, *patterns: str) -> Corpus:
    splits, absent = {}, []
    for split, stems in _stems(raw, [".txt"]).items():
        names = [pattern.format(stem) for pattern in patterns for stem in stems]
        path = find(raw, *names)
        if path:
            splits[split] = _line_split(path)
        elif not split.startswith("test"):
            absent.append(names[0])
    if absent:
        raise missing(raw, absent, "Each may be gzipped (.gz).")
    return Corpus(splits)


def _line_split(path: Path) -> Split:
    def rows(reading: Reading) -> Iterator[Row]:
        return ((line,) for line in read_lines(path, reading))

    return Split([path], rows)
