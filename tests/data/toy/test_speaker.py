import collections

import pytest

from talkconv.data.toy import english, german
from talkconv.data.toy.clauses import shows_object, shows_subject
from talkconv.data.toy.lexicon import HE, SHE, THE, THEY, WE, WHO, I, noun
from talkconv.data.toy.meaning import Phrase
from talkconv.data.toy.speaker import Speaker


@pytest.fixture(scope="module")
def said():
    speaker = Speaker("of the tests")
    return [speaker.sentence() for _ in range(12_000)]


@pytest.fixture(scope="module")
def pairs(said):
    return [(german.sentence(meaning), english.sentence(meaning)) for meaning in said]


def test_each_german_sentence_means_one_thing(pairs):
    meanings = collections.defaultdict(set)
    for source, target in pairs:
        meanings[source].add(target)
    assert [found for found in meanings.items() if len(found[1]) > 1] == []


def test_sentences_are_written_as_sentences(pairs):
    for text in (text for pair in pairs for text in pair):
        assert text[0].isupper()
        assert text[-1] in ".?"
        assert "  " not in text
        assert " ," not in text
        assert ",," not in text


def test_everything_the_grammar_has_is_said(said, pairs):
    assert {meaning.first for meaning in said} == {
        *("subject", "time", "accusative", "dative", "verb", "clause")
    }
    sources = " ".join(source for source, _ in pairs)
    for word in ("weil", "dass", "denen", "keinen", "nicht", "zum", "ins", "anruft"):
        assert f" {word} " in sources or f" {word}," in sources or f" {word}." in sources, word


def test_objects_come_first_only_where_a_case_tells(said):
    """den Hund sieht die Frau; die Frau, die der Hund sieht; but not: die Katze sieht die Frau."""
    relatives, fronted = 0, 0
    for meaning in said:
        main = meaning.main
        if meaning.first == "accusative" and main.accusative is not WHO:
            fronted += 1
            assert shows_object(main.accusative)
        for part in (main.subject, main.accusative):
            relative = part.relative if isinstance(part, Phrase) else None
            if relative is not None and relative.role == "accusative" and not relative.preposition:
                relatives += 1
                assert part.gender == "m" or shows_subject(relative.clause.subject)
    assert min(relatives, fronted) > 50


def test_what_shows_its_case():
    man, woman = Phrase(noun("Mann"), THE), Phrase(noun("Frau"), THE)
    assert shows_object(man)
    assert shows_subject(man)
    assert not shows_object(woman)
    assert not shows_subject(woman)
    assert shows_object(I)
    assert not shows_object(WE)
    assert shows_subject(HE)
    assert not shows_subject(SHE)
    assert not shows_subject(THEY)
