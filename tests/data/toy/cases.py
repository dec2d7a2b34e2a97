"""Meanings with their sentences in both languages, written by a person."""

from talkconv.data.toy import lexicon as words
from talkconv.data.toy.lexicon import EVERY, OWN, THE, THIS, A, noun
from talkconv.data.toy.meaning import (
    Clause,
    Couple,
    Gap,
    Phrase,
    Place,
    Preposition,
    Quality,
    Relative,
    Sentence,
)
from talkconv.data.toy.verbs import BE, MODALS, verb

CAN, SHOULD, HAVE_TO, WANT = MODALS
MY = OWN[0]


def does(name, subject, *tense, **parts):
    return Clause(verb(name), subject, *tense, **parts)


def phrase(determiner, name, adjective="", **more):
    found = [word for word in words.ADJECTIVES if word.german == adjective]
    return Phrase(noun(name), determiner, adjective=found[0] if found else None, **more)


def time(name):
    return next(found for found in words.TIMES if found.german == name)


def conjunction(name):
    return next(found for found in words.SUBORDINATES if found.german == name)


def adjective(name):
    return next(found for found in words.ADJECTIVES if found.german == name)


MAN, WOMAN, CHILD = phrase(THE, "Mann"), phrase(THE, "Frau"), phrase(THE, "Kind")
DOG, BOOK = phrase(THE, "Hund"), phrase(THE, "Buch")
CALLS = does("anrufen", MAN, accusative=WOMAN)
SLEEPS = does("schlafen", CHILD)
INTO, TO = words.DIRECTIONS[:2]
WITH = Preposition("mit", "dative", "with")


def relative(role, name, subject=None, **parts):
    return Relative(role, does(name, subject, **parts))


TABLE = [
    # verb second, whatever comes first
    (Sentence(CALLS), "Der Mann ruft die Frau an.", "The man calls the woman."),
    (
        Sentence(does("lesen", MAN, time=time("heute"), accusative=BOOK), "time"),
        "Heute liest der Mann das Buch.",
        "Today the man reads the book.",
    ),
    (
        Sentence(does("sehen", WOMAN, accusative=DOG), "accusative"),
        "Den Hund sieht die Frau.",
        "The woman sees the dog.",
    ),
    (
        Sentence(does("helfen", MAN, "past", dative=WOMAN), "dative"),
        "Der Frau hat der Mann geholfen.",
        "The man helped the woman.",
    ),
    # verb last, the separable verb in one piece
    (
        Sentence(SLEEPS, "subject", conjunction("weil"), CALLS),
        "Das Kind schläft, weil der Mann die Frau anruft.",
        "The child sleeps because the man calls the woman.",
    ),
    (
        Sentence(SLEEPS, "clause", conjunction("obwohl"), does("regnen", words.IT)),
        "Obwohl es regnet, schläft das Kind.",
        "Although it rains, the child sleeps.",
    ),
    (
        Sentence(does("wissen", words.I, complement=does("gehen", words.SHE, "past",
                 place=Place(INTO, phrase(THE, "Stadt"))))),
        "Ich weiß, dass sie in die Stadt gegangen ist.",
        "I know that she went into the city.",
    ),
    (
        Sentence(does("versuchen", words.HE, complement=does("anrufen", None,
                 accusative=words.I))),
        "Er versucht, mich anzurufen.",
        "He tries to call me.",
    ),
    (
        Sentence(does("lachen", MAN), "subject", words.BUT, does("weinen", words.THEY)),
        "Der Mann lacht, aber sie weinen.",
        "The man laughs, but they cry.",
    ),
    # tenses, modals, negation
    (
        Sentence(does("aufstehen", words.YOU, "past")),
        "Du bist aufgestanden.",
        "You got up.",
    ),
    (
        Sentence(does("aufwecken", words.WE, "future", time=time("bald"),
                 accusative=words.HE)),
        "Wir werden ihn bald aufwecken.",
        "We will wake him up soon.",
    ),
    (
        Sentence(does("anrufen", MAN, modal=CAN, negated=True, accusative=WOMAN)),
        "Der Mann kann die Frau nicht anrufen.",
        "The man cannot call the woman.",
    ),
    (
        Sentence(does("lesen", CHILD, modal=HAVE_TO, negated=True, accusative=BOOK)),
        "Das Kind muss das Buch nicht lesen.",
        "The child does not have to read the book.",
    ),
    (
        Sentence(SLEEPS, "subject", conjunction("weil"),
                 does("lesen", WOMAN, modal=WANT, accusative=BOOK)),
        "Das Kind schläft, weil die Frau das Buch lesen will.",
        "The child sleeps because the woman wants to read the book.",
    ),
    (
        Sentence(does("lesen", MAN, negated=True, accusative=phrase(A, "Buch"))),
        "Der Mann liest kein Buch.",
        "The man does not read a book.",
    ),
    (
        Sentence(does("kaufen", MAN, "past", negated=True,
                 accusative=phrase(A, "Apfel", "frisch", plural=True))),
        "Der Mann hat keine frischen Äpfel gekauft.",
        "The man did not buy any fresh apples.",
    ),
    # phrases
    (
        Sentence(does("zeigen", words.SHE, dative=phrase(MY, "Kind", plural=True),
                 accusative=phrase(THE, "Brief", plural=True, number=21))),
        "Sie zeigt meinen Kindern die einundzwanzig Briefe.",
        "She shows my children the twenty-one letters.",
    ),
    (
        Sentence(does("suchen", words.THEY,
                 accusative=phrase(THE, "Hut", "alt", owner=phrase(THIS, "Lehrer", plural=True)))),
        "Sie suchen den alten Hut dieser Lehrer.",
        "They look for these teachers' old hat.",
    ),
    (
        Sentence(does("sehen", Couple(MAN, WOMAN), accusative=phrase(EVERY, "Hund"))),
        "Der Mann und die Frau sehen jeden Hund.",
        "The man and the woman see every dog.",
    ),
    (
        Sentence(does("schlafen", phrase(A, "Onkel"),
                 place=Place(words.IN, phrase(THE, "Garten")))),
        "Ein Onkel schläft im Garten.",
        "An uncle sleeps in the garden.",
    ),
    (
        Sentence(does("zurückkommen", words.YOU_ALL, place=Place(TO, phrase(THE, "Schule")))),
        "Ihr kommt zur Schule zurück.",
        "You come back to the school.",
    ),
    (
        Sentence(Clause(BE, phrase(THIS, "Hotel"), "past", negated=True,
                 quality=Quality(adjective("teuer"), phrase(A, "Haus")))),
        "Dieses Hotel war nicht teurer als ein Haus.",
        "This hotel was not more expensive than a house.",
    ),
    # relative clauses
    (
        Sentence(does("lachen", phrase(THE, "Mann", relative=relative(
            "accusative", "sehen", WOMAN, accusative=Gap(False))))),
        "Der Mann, den die Frau sieht, lacht.",
        "The man whom the woman sees laughs.",
    ),
    (
        Sentence(does("lesen", MAN, "past", accusative=phrase(THE, "Buch", relative=relative(
            "accusative", "vorlesen", words.HE, dative=WOMAN, accusative=Gap(False))))),
        "Der Mann hat das Buch gelesen, das er der Frau vorliest.",
        "The man read the book that he reads the woman.",
    ),
    (
        Sentence(does("danken", phrase(A, "Frau", plural=True, relative=relative(
            "dative", "geben", MAN, dative=Gap(True), accusative=BOOK)), dative=CHILD)),
        "Frauen, denen der Mann das Buch gibt, danken dem Kind.",
        "Women to whom the man gives the book thank the child.",
    ),
    (
        Sentence(does("schlafen", phrase(THE, "Hund", relative=Relative(
            "dative",
            does("spielen", CHILD, place=Place(WITH, Gap(False))), WITH)))),
        "Der Hund, mit dem das Kind spielt, schläft.",
        "The dog with which the child plays sleeps.",
    ),
    (
        Sentence(does("warten", CHILD, place=Place(
            Preposition("auf", "accusative", "for"),
            phrase(THE, "Lehrerin", relative=relative(
                "nominative", "ankommen", Gap(False), tense="past"))))),
        "Das Kind wartet auf die Lehrerin, die angekommen ist.",
        "The child waits for the teacher who arrived.",
    ),
    (
        Sentence(does("schlafen", words.HE, place=Place(words.IN, phrase(
            THE, "Haus", relative=relative(
                "accusative", "malen", words.I, accusative=Gap(False)))))),
        "Er schläft in dem Haus, das ich male.",
        "He sleeps in the house that I paint.",
    ),
    # questions
    (Sentence(CALLS, "verb"), "Ruft der Mann die Frau an?", "Does the man call the woman?"),
    (
        Sentence(does("weglaufen", DOG, "past"), "verb", question=words.QUESTIONS[2]),
        "Warum ist der Hund weggelaufen?",
        "Why did the dog run away?",
    ),
    (
        Sentence(does("sehen", words.WHO, "past", accusative=DOG)),
        "Wer hat den Hund gesehen?",
        "Who saw the dog?",
    ),
    (
        Sentence(does("einladen", words.YOU, modal=SHOULD, accusative=words.WHO), "accusative"),
        "Wen sollst du einladen?",
        "Whom should you invite?",
    ),
    (
        Sentence(does("bringen", words.SHE, dative=words.WHO, accusative=BOOK), "dative"),
        "Wem bringt sie das Buch?",
        "To whom does she bring the book?",
    ),
]  # fmt: skip
