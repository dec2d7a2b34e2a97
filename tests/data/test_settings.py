import pytest

from talkconv.data.settings import DataSettings


def test_round_trip():
    settings = DataSettings(corpus="datasets:wmt14:de-en", vocabulary=8_000, max_ratio=1.5)
    assert DataSettings(**settings.as_dict()) == settings


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(corpus="iwslt"), "did you mean 'iwslt14'"),
        (dict(corpus="pairs", length_in="letters"), "length_in must be 'words' or 'subwords'"),
        (dict(corpus="pairs", length_in="subwords"), "needs a vocabulary"),
        (dict(corpus="pairs", max_ratio=0.5), "max_ratio must be at least 1, got 0.5"),
        (dict(corpus="pairs", vocabulary=0), "vocabulary must be positive, got 0"),
        (dict(corpus="text", block=-1), "block must be positive, got -1"),
    ],
)
def test_mistakes_are_told(wrong, message):
    with pytest.raises(ValueError, match=message):
        DataSettings(**wrong)
