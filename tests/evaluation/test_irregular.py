import pytest

from talkconv.evaluation.irregular import base_form, irregular_forms


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
        # a word has two bases in WordNet's lists: the later list, and the first word of a line
        ("best", "well"),
        ("axes", "ax"),
        # rare ones
        ("abetting", "abet"),
        ("zoonoses", "zoonosis"),
    ],
)
def test_forms_have_bases(form, base):
    assert base_form(form) == base


@pytest.mark.parametrize(
    "word", ["died", "priest", "carrier", "walked", "women", "having", "#", ""]
)
def test_other_words_are_left_to_the_rules(word):
    assert base_form(word) is None


def test_the_list_holds_all_forms_of_wordnet_that_a_word_of_rouge_can_be():
    forms = irregular_forms()
    assert len(forms) == 5593
    assert all(len(form) > 3 and form.isalnum() for form in forms)
