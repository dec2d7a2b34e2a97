import time

import pytest

from talkconv.data.moses import Moses


@pytest.mark.parametrize("lang", ["de", "en"])
def test_byte_for_byte_as_moses(shared, lang):
    """All 1014 lines of each language are equal."""
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


@pytest.mark.parametrize(
    ("lang", "raw", "words"),
    [
        # the last dot is split off whatever stands before it
        ("de", "Das ergibt 4.", "Das ergibt 4 ."),
        ("en", "This is plan B.", "This is plan B ."),
        ("en", "He lives in the U.S.", "He lives in the U.S ."),
        # others stay with abbreviations, before small letters, and with numbers before numbers
        ("de", "Der 4. Juli und A. Meier", "Der 4. Juli und A. Meier"),
        ("en", "The 4. July and A. Miller", "The 4 . July and A. Miller"),
        ("en", "See No. 7 and No. Seven", "See No. 7 and No . Seven"),
        ("en", "a fn. x of U.S. Steel", "a fn. x of U.S. Steel"),
        ("xx", "Mr. X", "Mr. X"),
        # letters of all writing systems are letters, and Indic viramas are not
        ("en", "家がある。 한국어 русский", "家がある 。 한국어 русский"),
        ("hi", "हिन्दी", "हिन ् दी"),
        ("en", "cafe\u0301", "cafe \u0301"),
        # characters within words
        ("fi", "Nato:n USA: 3:4", "Nato:n USA : 3 : 4"),
        ("en", "Nato:n", "Nato : n"),
        ("ca", "col·lapse d'aigua", "col·lapse d&apos; aigua"),
        ("tdt", "ne'e na'in", "ne&apos;e na&apos;in"),
        ("so", "go'aan 'x", "go&apos;aan &apos; x"),
        ("ga", "d'fhear", "d&apos; fhear"),
        ("en", "the 80's, 'x' and so.'", "the 80 &apos;s , &apos; x &apos; and so . &apos;"),
        ("en", "1,000,x 2, ٣,٤ 3,", "1,000 , x 2 , ٣,٤ 3 ,"),
        ("en", "wait... . .. end..", "wait ... . .. end .."),
        ("en", "a\x01b\x1cc\x0bd", "abc d"),
    ],
)
def test_words_of_todays_moses(lang, raw, words):
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
