"""A German-English corpus of any length, made from a grammar and a lexicon without any file.

Each German sentence has one English translation. It has cases that agree, verbs in second or last
position, separable verbs that are split, and relative clauses.
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from talkconv.data.toy import english, german
from talkconv.data.toy.speaker import Speaker

SPLITS = ("train", "valid", "test")


class Pair(NamedTuple):
    source: str
    target: str


def generate(sizes: Mapping[str, int], seed: int = 0) -> dict[str, Iterator[Pair]]:
    """Return streams of distinct pairs, by split.

    A sentence belongs to the same split for all seeds, so no training set of any seed contains a
    test sentence of another.

    >>> splits = generate({"train": 1000, "test": 10})
    >>> next(splits["test"]).target
    'A clever student and ninety-four aunts promise to come back to his forest.'
    """
    unknown = set(sizes) - set(SPLITS)
    if unknown:
        raise ValueError(f"sizes must be of {SPLITS}, got {sorted(unknown)}")
    return {split: _pairs(split, size, seed) for split, size in sizes.items()}


def split_of(source: str) -> str:
    """Return the split of a German sentence: one in 16 is for valid, and one in 16 for test."""
    return {0: "test", 1: "valid"}.get(zlib.crc32(source.encode()) % 16, "train")


def _pairs(split: str, size: int, seed: int) -> Iterator[Pair]:
    speaker = Speaker(f"{split} {seed}")
    said: set[str] = set()
    while len(said) < size:
        meaning = speaker.sentence()
        source = german.sentence(meaning)
        if split_of(source) == split and source not in said:
            said.add(source)
            yield Pair(source, english.sentence(meaning))
