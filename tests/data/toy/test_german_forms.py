"""Compares forms with tables written by hand, as in a school grammar."""

import pytest

from talkconv.data.toy import german_forms as forms
from talkconv.data.toy.lexicon import ADJECTIVES, NOUNS, A, noun
from talkconv.data.toy.meaning import Phrase
from talkconv.data.toy.verbs import MODALS, VERBS, verb

CASES = ("nominative", "accusative", "dative", "genitive")


def declined(determiner, adjective, name, *, plural=False):
    word = noun(name)
    gender = "p" if plural else word.gender
    tired = next(found for found in ADJECTIVES if found.german == adjective)
    found = []
    for case in CASES:
        article = [forms.determiner(determiner, case, gender)] if determiner else []
        with_ending = forms.adjective(tired, determiner, case, gender)
        found.append(" ".join([*article, with_ending, forms.noun(word, case, plural=plural)]))
    return found


@pytest.mark.parametrize(
    ("determiner", "adjective", "name", "plural", "expected"),
    [
        (
            *("der", "alt", "Mann", False),
            ["der alte Mann", "den alten Mann", "dem alten Mann", "des alten Mannes"],
        ),
        (
            *("die", "jung", "Frau", False),
            ["die junge Frau", "die junge Frau", "der jungen Frau", "der jungen Frau"],
        ),
        (
            *("das", "klein", "Kind", False),
            ["das kleine Kind", "das kleine Kind", "dem kleinen Kind", "des kleinen Kindes"],
        ),
        (
            *("der", "müde", "Kind", True),
            ["die müden Kinder", "die müden Kinder", "den müden Kindern", "der müden Kinder"],
        ),
        (
            *("ein", "teuer", "Hut", False),
            ["ein teurer Hut", "einen teuren Hut", "einem teuren Hut", "eines teuren Hutes"],
        ),
        (
            *("mein", "dunkel", "Küche", False),
            [
                "meine dunkle Küche",
                "meine dunkle Küche",
                "meiner dunklen Küche",
                "meiner dunklen Küche",
            ],
        ),
        (
            *("kein", "neu", "Buch", False),
            ["kein neues Buch", "kein neues Buch", "keinem neuen Buch", "keines neuen Buches"],
        ),
        (
            *("unser", "groß", "Auto", True),
            [
                "unsere großen Autos",
                "unsere großen Autos",
                "unseren großen Autos",
                "unserer großen Autos",
            ],
        ),
        (
            *("dieser", "klug", "Junge", False),
            [
                "dieser kluge Junge",
                "diesen klugen Jungen",
                "diesem klugen Jungen",
                "dieses klugen Jungen",
            ],
        ),
        (
            *("jeder", "reich", "Königin", False),
            [
                "jede reiche Königin",
                "jede reiche Königin",
                "jeder reichen Königin",
                "jeder reichen Königin",
            ],
        ),
        (
            *("", "frisch", "Apfel", True),
            ["frische Äpfel", "frische Äpfel", "frischen Äpfeln", "frischer Äpfel"],
        ),
        (
            *("der", "alt", "Nachbar", True),
            [
                "die alten Nachbarn",
                "die alten Nachbarn",
                "den alten Nachbarn",
                "der alten Nachbarn",
            ],
        ),
        (
            *("der", "alt", "Park", False),
            ["der alte Park", "den alten Park", "dem alten Park", "des alten Parks"],
        ),
    ],
)
def test_declension(determiner, adjective, name, plural, expected):
    determiner = "der" if determiner in ("die", "das") else determiner
    assert declined(determiner, adjective, name, plural=plural) == expected


def test_the_weak_nouns_are_these():
    weak = {word.german for word in NOUNS if word.weak}
    assert weak == {"Junge", "Student", "Nachbar", "Bauer", "Bär", "Hase"}


@pytest.mark.parametrize("word", NOUNS, ids=lambda word: word.german)
def test_dative_plurals_end_in_n_or_s(word):
    assert forms.noun(word, "dative", plural=True)[-1] in "ns"


def test_there_is_no_indefinite_article_for_many():
    assert forms.written_determiner(Phrase(noun("Kind"), A, plural=True)) == ""
    assert forms.written_determiner(Phrase(noun("Kind"), A)) == "ein"


def test_relative_pronouns():
    table = [[forms.relative_pronoun(case, gender) for gender in "mfnp"] for case in CASES]
    assert table == [
        ["der", "die", "das", "die"],
        ["den", "die", "das", "die"],
        ["dem", "der", "dem", "denen"],
        ["dessen", "deren", "dessen", "deren"],
    ]


@pytest.mark.parametrize(
    ("infinitive", "expected"),
    [
        ("kaufen", "kaufe kaufst kauft kaufen kauft kaufen"),
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten arbeitet arbeiten"),
        ("finden", "finde findest findet finden findet finden"),
        ("lesen", "lese liest liest lesen lest lesen"),
        ("essen", "esse isst isst essen esst essen"),
        ("tanzen", "tanze tanzt tanzt tanzen tanzt tanzen"),
        ("waschen", "wasche wäschst wäscht waschen wascht waschen"),
        ("nehmen", "nehme nimmst nimmt nehmen nehmt nehmen"),
        ("treffen", "treffe triffst trifft treffen trefft treffen"),
        ("verlassen", "verlasse verlässt verlässt verlassen verlasst verlassen"),
        ("vergessen", "vergesse vergisst vergisst vergessen vergesst vergessen"),
        ("einladen", "lade lädst lädt laden ladet laden"),
        ("vorlesen", "lese liest liest lesen lest lesen"),
        ("füttern", "füttere fütterst füttert füttern füttert füttern"),
        ("schneien", "schneie schneist schneit schneien schneit schneien"),
        ("wissen", "weiß weißt weiß wissen wisst wissen"),
    ],
)
def test_conjugation(infinitive, expected):
    assert forms.present(verb(infinitive)) == expected.split()


def test_third_persons_are_what_the_lexicon_says():
    for word in VERBS:
        assert forms.present(word)[2] == word.third


@pytest.mark.parametrize(
    ("infinitive", "expected"),
    [
        ("können", "kann kannst kann können könnt können"),
        ("müssen", "muss musst muss müssen müsst müssen"),
        ("sollen", "soll sollst soll sollen sollt sollen"),
        ("wollen", "will willst will wollen wollt wollen"),
    ],
)
def test_modals(infinitive, expected):
    word = next(modal for modal in MODALS if modal.infinitive == infinitive)
    assert forms.modal(word.infinitive, word.singular) == expected.split()


def test_zu_goes_between_particle_and_verb():
    assert forms.with_zu(verb("anrufen")) == "anzurufen"
    assert forms.with_zu(verb("lesen")) == "zu lesen"


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (2, "zwei"),
        (11, "elf"),
        (12, "zwölf"),
        (16, "sechzehn"),
        (17, "siebzehn"),
        (20, "zwanzig"),
        (21, "einundzwanzig"),
        (30, "dreißig"),
        (37, "siebenunddreißig"),
        (66, "sechsundsechzig"),
        (71, "einundsiebzig"),
        (99, "neunundneunzig"),
    ],
)
def test_numbers(n, expected):
    assert forms.number(n) == expected
