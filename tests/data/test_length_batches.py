import itertools

import numpy as np

from talkconv.data.length_batches import batch_bounds


def test_batches_are_as_large_as_they_may_be():
    random = np.random.default_rng(0)
    for order in (1, -1, 0):
        lengths = random.integers(0, 30, 500)
        lengths = np.sort(lengths)[::order] if order else lengths
        bounds = batch_bounds(lengths, tokens=100)
        assert (bounds[0], bounds[-1]) == (0, 500)
        for begin, end in itertools.pairwise(bounds):
            assert lengths[begin:end].max() * (end - begin) <= 100
            if end < 500:
                assert lengths[begin : end + 1].max() * (end + 1 - begin) > 100


def test_a_sequence_that_is_too_long_is_a_batch_of_its_own():
    assert batch_bounds([200, 3, 150, 2], tokens=100).tolist() == [0, 1, 2, 3, 4]


def test_nothing_gives_no_batches():
    assert batch_bounds([], tokens=100).tolist() == [0]
