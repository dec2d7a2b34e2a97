"""Finds rows that occur more than once, within a split or in two. They make scores too good."""

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

import numpy
from numpy.typing import NDArray

from talkconv.data.chunks import PAIR, TEXT, read_chunk

Hashes = NDArray[numpy.uint64]
# It is normal that headings and other short lines of running text repeat.
_FEWEST_WORDS = 8


def row_hashes(path: Path) -> Hashes:
    """Return a number for each row of a chunk; equal rows have equal numbers.

    Two different rows have the same number by chance once in 2**64 cases. Lines of running text
    with fewer than 8 words have none.
    """
    table = read_chunk(path)
    if PAIR[0] in table.column_names:
        sides = (table[name].to_pylist() for name in PAIR)
        rows = ["\0".join(row) for row in zip(*sides, strict=True)]
    else:
        lines = table[TEXT[0]].to_pylist()
        rows = [line for line in lines if len(line.split()) >= _FEWEST_WORDS]
    digests = b"".join(blake2b(row.encode(), digest_size=8).digest() for row in rows)
    return numpy.frombuffer(digests, numpy.uint64)


def count_repeats(splits: Mapping[str, Hashes]) -> dict[str, dict[str, int]]:
    """Count the rows of each split that repeat a row of it, or that occur in an earlier split.

    >>> train, test = (numpy.array(rows, numpy.uint64) for rows in ([1, 2, 2], [2, 3]))
    >>> count_repeats({"train": train, "test": test})
    {'train': {'compared': 3, 'train': 1}, 'test': {'compared': 2, 'test': 0, 'train': 1}}
    """
    found: dict[str, dict[str, int]] = {}
    seen: dict[str, Hashes] = {}
    for name, hashes in splits.items():
        different = numpy.unique(hashes)
        found[name] = {"compared": len(hashes), name: len(hashes) - len(different)}
        for other, rows in seen.items():
            found[name][other] = int(numpy.isin(hashes, rows).sum())
        seen[name] = different
    return found
