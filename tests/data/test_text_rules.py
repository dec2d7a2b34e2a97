import pytest

from talkconv.data.text_rules import make_rules

CODES = [("h", "o"), ("u", "s"), ("us", "e</w>"), ("ho", "use</w>")]
PLAIN = dict(lowercase=False, normalize=False, split_hyphens=False)


def test_marked_text_keeps_its_subwords_and_loses_its_marks():
    rules = make_rules("none", "de", PLAIN)
    marked = "ein Spiel@@  haus &apos;s ."
    assert rules.subwords(marked) == "ein Spiel@@ haus &apos;s ."
    assert rules.words(marked) == "ein Spielhaus &apos;s ."
    assert rules.text(rules.join(rules.subwords(marked))) == rules.words(marked)
    assert rules.reference("ein Spiel@@ haus") == "ein Spielhaus"


def test_codes_are_for_lines_without_marks():
    rules = make_rules("none", "en", PLAIN, CODES)
    assert rules.subwords("a house horse") == "a house ho@@ r@@ s@@ e"
    # others may have segmented it otherwise
    assert rules.subwords("a hou@@ se house") == "a hou@@ se house"
    assert rules.words("a hou@@ se house") == "a house house"


def test_lower_case_is_for_all():
    for tokenizer in ("none", "moses"):
        rules = make_rules(tokenizer, "en", PLAIN | {"lowercase": True})
        assert rules.words("A House") == rules.subwords("A House") == "a house"


def test_codes_after_moses():
    rules = make_rules("moses", "en", PLAIN, CODES)
    assert rules.subwords("A horse, us.") == "A ho@@ r@@ s@@ e , u@@ s ."
    assert rules.join("A house &@@ apos;s use .") == rules.words("A house's use.")
    assert rules.text("A house &apos;s use .") == "A house's use."


@pytest.mark.parametrize("text", ["me@@ you", "all of it@@"])
def test_without_codes_moses_knows_no_marks(text):
    rules = make_rules("moses", "en", PLAIN)
    assert rules.join(text) == text
    assert rules.reference(text) == text
