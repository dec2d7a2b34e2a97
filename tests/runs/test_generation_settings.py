import pytest

from talkconv.runs.generation_settings import GenerationSettings


def test_defaults():
    settings = GenerationSettings()
    assert settings.num_beams == 5
    assert settings.longest(10) == 40


def test_longest_has_a_floor_and_a_ceiling():
    settings = GenerationSettings(max_length=30, max_ratio=2.0, max_extra=5, min_length=3)
    assert settings.longest(1) == 7
    assert settings.longest(0) == 5
    assert settings.longest(20) == 30


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (dict(num_beams=0), "num_beams must be at least 1, got 0"),
        (dict(max_length=0), "max_length must be at least 1"),
        (dict(min_length=-1), "min_length must be at least 0"),
        (dict(top_p=0), "top_p must be above 0"),
        (dict(top_p=1.1), "at most 1, got 1.1"),
        (dict(max_ratio=0, max_extra=0), "must not both be 0"),
        (dict(min_length=300), "at most max_length=256, got 300"),
    ],
)
def test_rejects_what_cannot_be(bad, message):
    with pytest.raises(ValueError, match=message):
        GenerationSettings(**bad)


def test_of_rejects_unknown_keys():
    with pytest.raises(ValueError, match="num_beam"):
        GenerationSettings.of({"num_beam": 4})


def test_of_accepts_a_full_mapping():
    assert GenerationSettings.of({"num_beams": 4}).num_beams == 4
