import itertools
import random
import tracemalloc

import pytest

from talkconv.evaluation import common_subsequence
from talkconv.evaluation.common_subsequence import common_length, common_positions


def longest(a, b):
    """Return the length of a longest common subsequence, by the usual table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, j in itertools.product(range(len(a)), range(len(b))):
        same = a[i] == b[j]
        table[i + 1][j + 1] = table[i][j] + 1 if same else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def way_back(a, b):
    """Return the positions by ROUGE-1.5.5's way back through the whole table of lengths."""
    lengths = {(i, j): longest(a[:i], b[:j]) for i in range(len(a) + 1) for j in range(len(b) + 1)}
    positions = []
    i, j = len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            positions.append(i)
        elif lengths[i, j - 1] > lengths[i - 1, j]:
            j -= 1
        else:
            i -= 1
    return positions[::-1]


def test_common_positions_are_a_longest_common_subsequence():
    random.seed(1)
    for _ in range(300):
        a, b = (tuple(random.choices("abcde", k=random.randint(0, 12))) for _ in range(2))
        positions = common_positions(a, b)
        assert len(positions) == longest(a, b)
        rest = iter(b)
        assert all(a[at] in rest for at in positions)
        assert positions == sorted(set(positions))


# with blocks of two words most sequences have several
@pytest.mark.parametrize("block", [256, 2])
def test_positions_are_those_of_the_whole_table(block, monkeypatch):
    monkeypatch.setattr(common_subsequence, "_BLOCK", block)
    random.seed(2)
    for _ in range(100):
        a, b = (tuple(random.choices("abc", k=random.randint(0, 9))) for _ in range(2))
        assert common_positions(a, b) == way_back(a, b)
        assert common_length(a, b) == longest(a, b)


@pytest.mark.parametrize("distinct", [30, 20_000])
@pytest.mark.parametrize("find", [common_length, common_positions])
def test_memory_stays_small(find, distinct):
    """All rows of 20 000 words, or masks for as many words, would take 50 MB."""
    random.seed(3)
    a, b = ([f"w{random.randrange(distinct)}" for _ in range(20_000)] for _ in range(2))
    tracemalloc.start()
    find(a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6
