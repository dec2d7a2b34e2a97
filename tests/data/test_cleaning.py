import pytest

from talkconv.data.cleaning import EMPTY, LONG_WORD, why_dropped, why_dropped_raw
from talkconv.data.data_settings import DataSettings

CLEAN = dict(corpus="pairs", max_length=10, max_ratio=2.0)


@pytest.mark.parametrize(
    ("lengths", "why"),
    [
        ((5, 10), None),
        ((10, 5), None),
        ((0, 3), EMPTY),
        ((11, 10), "a side of more than 10 words"),
        ((10, 11), "a side of more than 10 words"),
        ((9, 4), "one side more than 2.0 times the other"),
        ((4, 9), "one side more than 2.0 times the other"),
    ],
)
def test_lengths(lengths, why):
    assert why_dropped(lengths, DataSettings(**CLEAN)) == why


def test_what_is_cut_is_not_too_long():
    settings = DataSettings(corpus="pairs", max_length=10, max_source_tokens=4)
    assert why_dropped((99, 10), settings) is None
    assert why_dropped((10, 99), settings) == "a side of more than 10 words"


def test_raw_pairs():
    assert why_dropped_raw(("a b", "c")) is None
    assert why_dropped_raw(("a b", " \t")) == EMPTY
    assert why_dropped_raw(("x" * 1_001, "c")) == LONG_WORD
    assert why_dropped_raw(("x " * 1_001, "c")) is None
