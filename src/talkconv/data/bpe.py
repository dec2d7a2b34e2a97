"""Learns byte-pair merges from counted words, as subword-nmt does.

The trainer of `tokenizers` chooses between equally frequent pairs by their ids. subword-nmt, with
which the paper's vocabularies were made, chooses the pair that comes last in the alphabet.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

# The last symbol of a word ends with this mark.
END = "</w>"
Pair = tuple[str, str]


def symbols_of(word: str) -> list[str]:
    """Return the symbols of a word before any merge.

    >>> symbols_of("the")
    ['t', 'h', 'e</w>']
    """
    return [*word[:-1], word[-1] + END]


def learn_merges(words: Mapping[str, int]) -> Iterator[Pair]:
    """Yield the merges, the most frequent pair first, until no pair occurs twice.

    >>> list(learn_merges({"low": 5, "lower": 1}))
    [('l', 'o'), ('lo', 'w</w>')]
    """
    spelled = [symbols_of(word) for word in words]
    times = list(words.values())
    counts: dict[Pair, int] = defaultdict(int)
    # The words that may contain a pair. A word that no longer contains it is skipped later.
    places: dict[Pair, set[int]] = defaultdict(set)
    for index, symbols in enumerate(spelled):
        for pair in pairwise(symbols):
            counts[pair] += times[index]
            places[pair].add(index)
    queue = [(-count, _Last(pair)) for pair, count in counts.items()]
    heapq.heapify(queue)
    while queue:
        negative, last = heapq.heappop(queue)
        pair = last.pair
        count = counts.get(pair, 0)
        if count != -negative:
            # A count that rose was pushed again at that time; one that fell is pushed again now.
            if count < -negative:
                heapq.heappush(queue, (-count, last))
            continue
        if count < 2:
            return
        yield pair
        changes: dict[Pair, int] = defaultdict(int)
        for index in places.pop(pair):
            for new in _merge(spelled[index], pair, times[index], changes):
                places[new].add(index)
        del counts[pair]
        for other, change in changes.items():
            if change and other != pair:
                counts[other] += change
                if change > 0:
                    heapq.heappush(queue, (-counts[other], _Last(other)))


def _merge(symbols: list[str], pair: Pair, times: int, changes: dict[Pair, int]) -> list[Pair]:
    """Merge `pair` in a word, from the left, and return the pairs that are new in this word.

    `changes` gets the differences in the counts of the neighbouring pairs.
    """
    first, second = pair
    both = first + second
    new = []
    here = -1
    try:
        while True:
            here = symbols.index(first, here + 1)
            if symbols[here + 1] != second:
                continue
            symbols[here : here + 2] = [both]
            if here:
                before = symbols[here - 1]
                changes[before, first] -= times
                changes[before, both] += times
                new.append((before, both))
            if here + 1 < len(symbols):
                after = symbols[here + 1]
                changes[second, after] -= times
                changes[both, after] += times
                new.append((both, after))
    except (ValueError, IndexError):
        # The word has no further such pair.
        return new


class _Last:
    """A pair that is ordered from the end of the alphabet, which decides between equal counts."""

    __slots__ = ("pair",)

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    def __lt__(self, other: "_Last") -> bool:
        return self.pair > other.pair
