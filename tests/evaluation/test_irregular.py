import pytest

from talkconv.evaluation.irregular import IRREGULAR, base_form


@pytest.mark.parametrize(
    ("form", "base"),
    [
        ("been", "be"),
        ("said", "say"),
        ("children", "child"),
        ("tried", "try"),
        ("busiest", "busy"),
        ("earlier", "early"),
        ("teenager", "teenager"),
    ],
)
def test_forms_have_bases(form, base):
    assert base_form(form) == base


@pytest.mark.parametrize("word", ["died", "priest", "carrier", "walked", "women", ""])
def test_other_words_are_left_to_the_rules(word):
    assert base_form(word) is None


def test_the_list_holds_words_alone():
    assert all(form.isalpha() and base.isalpha() for form, base in IRREGULAR.items())
    assert len(IRREGULAR) > 350
