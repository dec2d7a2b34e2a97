import json

import pytest

from talkconv.data.data_settings import DataSettings


def test_round_trip():
    settings = DataSettings(
        corpus="datasets:wmt14:de-en", vocabulary=8_000, max_ratio=1.5, protected=["%s", "<b>"]
    )
    assert DataSettings(**json.loads(json.dumps(settings.as_dict()))) == settings
    assert settings.as_dict()["protected"] == ["%s", "<b>"]
    # the rules of a worker process are kept by settings
    assert isinstance(hash(settings), int)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(corpus="iwslt"), "did you mean 'iwslt14'"),
        (dict(corpus="pairs", length_in="letters"), "length_in must be 'words' or 'subwords'"),
        (dict(corpus="pairs", length_in="subwords"), "needs a vocabulary"),
        (dict(corpus="pairs", max_ratio=0.5), "max_ratio must be at least 1, got 0.5"),
        (dict(corpus="pairs", vocabulary=0), "vocabulary must be positive, got 0"),
        (dict(corpus="text", block=-1), "block must be positive, got -1"),
        (dict(corpus="pairs", tokenizer="mose"), "did you mean 'moses'"),
        (dict(corpus="pairs", normalize=True), "normalize needs tokenizer = 'moses', got 'none'"),
        (dict(corpus="pairs", codes="c", vocabulary=9), "leave one of them out"),
        (dict(corpus="pairs", protected=["%s"]), "protected needs tokenizer = 'moses', got 'none'"),
        (dict(corpus="pairs", vocabulary=9, protected=["("]), "must be regular expressions"),
        (dict(corpus="pairs", tokenizer="bytes"), "vocabulary of at least 260 .* got None"),
        (dict(corpus="pairs", tokenizer="unigram", vocabulary=259), "at least 260 .* got 259"),
        (
            dict(corpus="pairs", tokenizer="bytes", vocabulary=300, min_frequency=2),
            "leave out min_frequency = 2",
        ),
    ],
)
def test_mistakes_are_told(wrong, message):
    with pytest.raises(ValueError, match=message):
        DataSettings(**wrong)


def test_words_and_vocabulary_are_apart():
    assert DataSettings(corpus="pairs").tokenizer == "none"
    assert DataSettings(corpus="pairs", vocabulary=9).tokenizer == "moses"
    # either may be asked for with or without subwords of our own
    assert DataSettings(corpus="pairs", tokenizer="moses").tokenizer == "moses"
    assert DataSettings(corpus="pairs", tokenizer="none", vocabulary=9).tokenizer == "none"


def test_settings_of_older_folders_keep_their_meaning():
    old = DataSettings(corpus="pairs").as_dict()
    for name in ("tokenizer", "codes", "protected"):
        old.pop(name)
    assert DataSettings(**old).tokenizer == "none"
    assert DataSettings(**{**old, "vocabulary": 9}).tokenizer == "moses"
