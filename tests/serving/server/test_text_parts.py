"""Texts are split into sentences, and nothing between the sentences is lost."""

import time

import pytest

from talkconv.serving.server.text_parts import (
    TooManyParts,
    html_parts,
    sentences_of,
    whole_lines,
)

TEXTS = [
    "",
    " ",
    "\n\n",
    "Eins. Zwei! Drei? Vier",
    "  Eins.  Zwei.\n\n\tDrei.\r\nVier\n",
    "Dr. No kam am 3. Mai zu A. Meier. Er ging.",
    "„Na?“ – „Gut.“ (So. Und so.) ... Ende…",
    "a\0b\u2028c\x0cd",
    "." * 50 + " A",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("split", [whole_lines, lambda text: sentences_of(text, "de")])
def test_the_parts_of_a_text_are_the_text(split, text):
    parts = split(text)
    assert "".join(parts.parts) == parts.filled(parts.sentences) == text
    assert all(sentence == sentence.strip() != "" for sentence in parts.sentences)


def test_sentences_end_where_readers_say_so():
    found = sentences_of("Dr. No kam am 3. Mai zu A. Meier. Er ging. „Na?“ fragte er.", "de")
    assert found.sentences == ["Dr. No kam am 3. Mai zu A. Meier.", "Er ging.", "„Na?“ fragte er."]
    assert sentences_of("Mr. Smith left. OK?", "en").sentences == ["Mr. Smith left.", "OK?"]
    # a language without a list of abbreviations is read as English
    assert sentences_of("Mr. X. Y.", "tlh").sentences == ["Mr. X. Y."]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("<p>Eins. <b>Zwei</b> drei.</p>", ["Eins.", "Zwei", "drei."]),
        ("a &amp; b &lt;c&gt;", ["a & b <c>"]),
        ("<script>if (a < b) c.</script>Text", ["Text"]),
        ("<STYLE>p {}</style><!-- Nein. --><code>x.</code>Ja", ["Ja"]),
        ("<!DOCTYPE html><p title='Nein.'>Ja", ["Ja"]),
        ("1 < 2 und 3 > 2", ["1 < 2 und 3 > 2"]),
        ("<!-- ohne Ende", []),
        ("<script>ohne Ende", []),
        ("&nbsp;", []),
    ],
)
def test_only_the_text_of_html_is_translated(text, sentences):
    assert html_parts(text, "de").sentences == sentences


@pytest.mark.parametrize("split", [whole_lines, lambda text, most: sentences_of(text, "de", most)])
def test_a_text_with_too_many_sentences_is_refused_early(split):
    assert len(split("a\nb\nc", 3).sentences) == 3
    with pytest.raises(TooManyParts):
        split("a\nb\nc", 2)
    with pytest.raises(TooManyParts):
        html_parts("<p>a<p>b<p>c", "de", 2)


@pytest.mark.parametrize(
    "unit",
    ["<", "<a ", "<!--", "<script>", "</script", "<script></script", "&amp", ". ", ".A ", "\n"],
)
def test_hostile_text_takes_linear_time(unit):
    """Ten times the text takes about ten times as long; a square would be a hundred times."""

    def seconds(size):
        text = unit * (size // len(unit))
        times = []
        for _ in range(3):
            began = time.perf_counter()
            html_parts(text, "de")
            sentences_of(text, "de")
            times.append(time.perf_counter() - began)
        return min(times)

    assert seconds(50_000) < 40 * seconds(5_000) + 0.01
