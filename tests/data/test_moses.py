import time

import pytest

from talkconv.data.moses import Moses


@pytest.mark.parametrize("lang", ["de", "en"])
def test_byte_for_byte_as_moses(shared, lang):
    """All 1014 lines of each language; there is no line that differs."""
    raw = (shared / "data" / "multi30k" / f"valid.{lang}").read_bytes().decode()
    expected = (shared / "fixtures" / "tokenizer" / f"valid.tokenized.{lang}").read_bytes().decode()
    moses = Moses(lang, lowercase=True, normalize=True)
    words = [moses.tokenize(line) for line in raw.split("\n")[:-1]]
    assert "".join(f"{line}\n" for line in words) == expected


@pytest.mark.parametrize(
    ("lang", "raw", "words"),
    [
        ("en", "It's 5,300 dollars, isn't it?", "It &apos;s 5,300 dollars , isn &apos;t it ?"),
        ("de", "Wie geht's, z.B. heute?", "Wie geht &apos; s , z.B. heute ?"),
        ("fr", "L'homme n'a rien.", "L&apos; homme n&apos; a rien ."),
        ("en", "a | b & [c] <d>", "a &#124; b &amp; &#91; c &#93; &lt; d &gt;"),
        ("en", "Wait... what.", "Wait ... what ."),
        ("en", "\u00a0 two  spaces\t", "two spaces"),
        ("en", "", ""),
    ],
)
def test_words(lang, raw, words):
    assert Moses(lang).tokenize(raw) == words


def test_the_rules_of_a_recipe():
    assert Moses("en", split_hyphens=True).tokenize("a well-known man") == "a well @-@ known man"
    assert Moses("en", lowercase=True).tokenize("ÄRGER ΟΔΟΣ") == "ärger οδοσ"
    assert Moses("en", normalize=True).tokenize("“so”, he\u200bsaid…") == (
        "&quot; so , &quot; he said ..."
    )
    # a full stop before the closing quotation mark of a German sentence moves behind it
    assert Moses("de", normalize=True).tokenize("Er sagte: „Ja.“") == (
        "Er sagte : &quot; Ja &quot; ."
    )


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("en", "It's John's dog, isn't it?"),
        ("en", 'He said: "Yes (really)."'),
        ("en", "It costs $5 [1]; 10% less."),
        ("de", "Ein Mann, der schläft."),
        ("fr", "L'homme n'a rien dit."),
    ],
)
def test_out_comes_what_went_in(lang, text):
    moses = Moses(lang)
    assert moses.detokenize(moses.tokenize(text)) == text


def test_hyphens_come_back():
    moses = Moses("en", split_hyphens=True)
    assert moses.detokenize(moses.tokenize("a well-known man")) == "a well-known man"


def test_a_line_of_100_000_words_takes_seconds():
    for lang in ("en", "de", "fr"):
        started = time.process_time()
        words = Moses(lang, normalize=True, split_hyphens=True).tokenize("Mr. A-b, " * 50_000)
        assert len(words.split()) >= 100_000
        assert time.process_time() - started < 20
