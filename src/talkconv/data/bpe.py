"""Learns byte-pair merges from counted words, as subword-nmt does.

`tokenizers` applies merges but breaks ties between equally frequent pairs by ids; subword-nmt, with
which the paper's vocabularies were made, takes the pair that comes last in the alphabet.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

# stands at the end of a word's last symbol
END = "</w>"
Pair = tuple[str, str]


def symbols_of(word: str) -> list[str]:
    """
    >>> symbols_of("the")
    ['t', 'h', 'e</w>']
    """
    return [*word[:-1], word[-1] + END]


def learn_merges(words: Mapping[str, int]) -> Iterator[Pair]:
    """Merges, the most frequent pair first, until no pair occurs twice.

    >>> list(learn_merges({"low": 5, "lower": 1}))
    [('l', 'o'), ('lo', 'w</w>')]
    """
    spelled = [symbols_of(word) for word in words]
    times = list(words.values())
    counts: dict[Pair, int] = defaultdict(int)
    # where a pair may stand: words that lost it are skipped when their turn comes
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
            # a count that rose was pushed again then; one that fell is pushed again now
            if count < -negative:
                heapq.heappush(queue, (-count, last))
            continue
        if count < 2:
            return
        yield pair
        changes: dict[Pair, int] = defaultdict(int)
        for index in places.pop(pair):
            before = spelled[index]
            after = _merged(before, pair)
            if len(after) == len(before):
                continue
            spelled[index] = after
            for old in pairwise(before):
                changes[old] -= times[index]
            for new in pairwise(after):
                changes[new] += times[index]
                places[new].add(index)
        for other, change in changes.items():
            if not change:
                continue
            counts[other] += change
            if change > 0:
                heapq.heappush(queue, (-counts[other], _Last(other)))
        del counts[pair]


class _Last:
    """Orders pairs from the end of the alphabet, which is how ties are broken."""

    __slots__ = ("pair",)

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    def __lt__(self, other: "_Last") -> bool:
        return self.pair > other.pair


def _merged(symbols: list[str], pair: Pair) -> list[str]:
    first, second = pair
    merged: list[str] = []
    position, end = 0, len(symbols)
    while position < end:
        here = symbols[position]
        if here == first and position + 1 < end and symbols[position + 1] == second:
            merged.append(first + second)
            position += 2
        else:
            merged.append(here)
            position += 1
    return merged
