import pytest

from talkconv.data.text_rules import make_rules

CODES = [("h", "o"), ("u", "s"), ("us", "e</w>"), ("ho", "use</w>")]
TAGS = ["%[a-zA-Z]", "</?[a-z]+>"]
PLAIN = dict(lowercase=False, normalize=False, split_hyphens=False)


def test_marked_text_keeps_its_subwords_and_loses_its_marks():
    rules = make_rules("none", "de", PLAIN)
    marked = "ein Spiel@@  haus &apos;s ."
    assert rules.subwords(marked) == "ein Spiel@@ haus &apos;s ."
    assert rules.words(marked) == "ein Spielhaus &apos;s ."
    assert rules.text(rules.subwords(marked)) == rules.words(marked)
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
    assert rules.joined("A house &@@ apos;s use .") == rules.words("A house's use.")
    assert rules.text("A house &apos;s use .") == "A house's use."


@pytest.mark.parametrize("text", ["me@@ you", "all of it@@"])
def test_without_codes_moses_knows_no_marks(text):
    rules = make_rules("moses", "en", PLAIN)
    assert rules.joined(text) == text
    assert rules.reference(text) == text


def test_placeholders_are_kept_whole():
    text = "Remove <b>%S</b> (%d files)?"
    broken = make_rules("moses", "en", PLAIN)
    assert broken.text(broken.subwords(text)) != broken.plain(text)
    # neither split nor put into lower case
    rules = make_rules("moses", "en", {**PLAIN, "lowercase": True, "protected": TAGS})
    assert rules.words(text) == "remove &lt;b&gt; %S &lt;/b&gt; ( %d files ) ?"
    assert rules.text(rules.words("REMOVE %S (%d)?")) == rules.plain("REMOVE %S (%d)?")
    assert rules.plain("REMOVE %S (%d)?") == "remove %S (%d)?"


@pytest.mark.parametrize("tokenizer", ["bytes", "unigram"])
def test_raw_text_stays_raw(tokenizer):
    rules = make_rules(tokenizer, "en", PLAIN)
    text = "  Don't  split %s <b>it</b>. "
    assert rules.subwords(text) == rules.text(text) == rules.plain(text) == text
    # tokenized BLEU is computed on the words of Moses all the same
    assert rules.words("Don't.") == rules.joined("Don't.") == "Don &apos;t ."
    assert make_rules(tokenizer, "en", {**PLAIN, "lowercase": True}).subwords("A") == "a"


def test_what_an_older_version_did_not_know_has_its_default():
    assert make_rules("moses", "en", {"lowercase": True}).words("A dog.") == "a dog ."
