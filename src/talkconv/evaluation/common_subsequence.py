"""Longest common subsequences of words. A line of a megabyte does not need too much memory.

Each row of the usual table of lengths is stored as one integer. Bit j is 0 if the length grows from
column j to column j + 1. A few operations on integers then make the next row.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import isqrt

Words = Sequence[str]

# Sequences of up to this many words keep all rows of the table; longer ones keep some of them.
_BLOCK = 256


def common_length(wanted: Words, found: Words) -> int:
    """Return the length of a longest common subsequence.

    >>> common_length("the cat sat".split(), "a cat that sat".split())
    2
    """
    full = _full(found)
    return len(found) - _last_row(full, wanted, _matches(found), full).bit_count()


def common_positions(wanted: Words, found: Words) -> list[int]:
    """Return the positions in `wanted` of a longest common subsequence with `found`.

    If there are several, this is the one that ROUGE-1.5.5 takes: going from the end to the start,
    it leaves out words of `wanted` first. The way back needs every row of the table. To save
    memory, only the first row of each block of a long table is kept, and the other rows of a block
    are computed again when the way back reaches it. n words then take the memory of sqrt(n) rows.
    """
    if not wanted:
        return []
    full = _full(found)
    matches = _matches(found)
    block = max(_BLOCK, isqrt(len(wanted)))
    begins = range(0, len(wanted), block)
    first_rows = [full]
    for begin in begins[:-1]:
        words = wanted[begin : begin + block]
        first_rows.append(_last_row(first_rows[-1], words, matches, full))
    positions: list[int] = []
    j = len(found)
    for begin, first in zip(reversed(begins), reversed(first_rows), strict=True):
        words = wanted[begin : begin + block]
        rows = [first, *_rows(first, words, matches, full)]
        i = len(words)
        while i and j:
            if words[i - 1] == found[j - 1]:
                i, j = i - 1, j - 1
                positions.append(begin + i)
            # If fewer bits are set, the common subsequence of the first i and j words is longer.
            elif _set_bits(rows[i - 1], j) > _set_bits(rows[i], j):
                j -= 1
            else:
                i -= 1
    return positions[::-1]


def _rows(row: int, wanted: Words, matches: Callable[[str], int], full: int) -> Iterator[int]:
    """Yield the row of the table after each word of `wanted`, given the row before the first."""
    for word in wanted:
        row = _next_row(row, matches(word), full)
        yield row


def _last_row(row: int, wanted: Words, matches: Callable[[str], int], full: int) -> int:
    for word in wanted:
        row = _next_row(row, matches(word), full)
    return row


def _next_row(row: int, matches: int, full: int) -> int:
    equal = row & matches
    return (row + equal | row - equal) & full


def _full(found: Words) -> int:
    return (1 << len(found)) - 1


def _set_bits(row: int, count: int) -> int:
    return (row & (1 << count) - 1).bit_count()


def _matches(found: Words) -> Callable[[str], int]:
    """Return a function that maps a word to an integer. Its bit j is 1 if found[j] is that word."""
    places = defaultdict(list)
    for j, word in enumerate(found):
        places[word].append(j)

    # Keeping an integer for each distinct word would need as much memory as the blocks save. The
    # cache keeps those of frequent words. Rare words have few bits, so computing them is quick.
    @lru_cache(maxsize=max(_BLOCK, isqrt(len(found))))
    def mask(word: str) -> int:
        if word not in places:
            return 0
        bits = bytearray(len(found) // 8 + 1)
        for j in places[word]:
            bits[j >> 3] |= 1 << (j & 7)
        return int.from_bytes(bits, "little")

    return mask
