import pytest

from talkconv.data.toy import english_forms as forms


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("read", "reads"),
        ("cry", "cries"),
        ("buy", "buys"),
        ("go", "goes"),
        ("wash", "washes"),
        ("watch", "watches"),
        ("have", "has"),
        ("tidy up", "tidies up"),
        ("fall asleep", "falls asleep"),
    ],
)
def test_third_person(base, expected):
    assert forms.third(base) == expected


@pytest.mark.parametrize(("word", "expected"), [("old", "an"), ("book", "a"), ("egg", "an")])
def test_article(word, expected):
    assert forms.article(word) == expected


@pytest.mark.parametrize(
    ("n", "expected"),
    [(2, "two"), (13, "thirteen"), (40, "forty"), (58, "fifty-eight"), (99, "ninety-nine")],
)
def test_numbers(n, expected):
    assert forms.number(n) == expected


def test_no_two_numbers_are_alike():
    assert len({forms.number(n) for n in range(2, 100)}) == 98
