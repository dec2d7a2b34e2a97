"""The meaning of a sentence, from which each language makes its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Case = Literal["nominative", "accusative", "dative", "genitive"]
Gender = Literal["m", "f", "n"]
Tense = Literal["present", "past", "future"]


@dataclass(frozen=True)
class Noun:
    german: str
    gender: Gender
    genitive: str
    german_plural: str
    english: str
    english_plural: str
    kind: str

    @property
    def weak(self) -> bool:
        """Return whether all cases but the first are as in the plural: der Junge, den Jungen."""
        return self.gender == "m" and self.genitive.endswith("n")


@dataclass(frozen=True)
class Adjective:
    german: str
    # Endings are added to this stem: teuer, but teur-e.
    stem: str
    english: str
    # It is "" for adjectives without degrees.
    comparative: str
    english_comparative: str
    kinds: frozenset[str]


@dataclass(frozen=True)
class Determiner:
    german: str
    english: str
    english_plural: str


@dataclass(frozen=True)
class Preposition:
    german: str
    case: Case
    english: str


@dataclass(frozen=True)
class Verb:
    """A verb: its basic forms and its objects. Each language derives the other forms."""

    particle: str
    infinitive: str
    third: str
    participle: str
    with_sein: bool
    english: str
    english_past: str
    subjects: frozenset[str]
    accusatives: frozenset[str] = frozenset()
    dative: bool = False
    preposition: Preposition | None = None
    directed: bool = False
    # "dass", "zu" or "" says which clause may follow.
    complement: str = ""


@dataclass(frozen=True)
class Modal:
    """A modal verb; in English an auxiliary (can) or a verb with `to` (want to)."""

    infinitive: str
    singular: str
    auxiliary: str
    verb: str


@dataclass(frozen=True)
class Time:
    german: str
    english: str
    tenses: frozenset[Tense]
    # always, often: English puts it before the verb; German never begins with some of them
    in_the_middle: bool = False
    may_begin: bool = True


@dataclass(frozen=True)
class Pronoun:
    person: int
    plural: bool
    nominative: str
    accusative: str
    dative: str
    english: str
    english_object: str


@dataclass(frozen=True)
class Phrase:
    """A noun with its determiner, adjectives and attributes."""

    noun: Noun
    determiner: Determiner
    plural: bool = False
    number: int | None = None
    adjective: Adjective | None = None
    owner: Phrase | None = None
    relative: Relative | None = None

    person = 3

    @property
    def gender(self) -> Literal["m", "f", "n", "p"]:
        return "p" if self.plural else self.noun.gender


@dataclass(frozen=True)
class Couple:
    """Two nominals that are joined: A and B."""

    first: Phrase
    second: Phrase

    person = 3
    plural = True


@dataclass(frozen=True)
class Gap:
    """The place of the described noun within its relative clause."""

    plural: bool

    person = 3


Nominal = Phrase | Couple | Pronoun | Gap


@dataclass(frozen=True)
class Relative:
    """A clause in which one nominal is a Gap."""

    role: Case
    clause: Clause
    # The preposition of the Gap: the man with whom she speaks.
    preposition: Preposition | None = None


@dataclass(frozen=True)
class Place:
    preposition: Preposition
    phrase: Nominal


@dataclass(frozen=True)
class Quality:
    """A property of a thing: old, or older than another."""

    adjective: Adjective
    than: Phrase | None = None


@dataclass(frozen=True)
class Clause:
    verb: Verb
    # It is None where the subject of another clause acts: she tries to read.
    subject: Nominal | None
    tense: Tense = "present"
    modal: Modal | None = None
    negated: bool = False
    time: Time | None = None
    dative: Nominal | None = None
    accusative: Nominal | None = None
    # The object of the verb's preposition, the place, or the direction.
    place: Place | None = None
    quality: Quality | None = None
    complement: Clause | None = None


@dataclass(frozen=True)
class Conjunction:
    german: str
    english: str
    # aber joins main clauses; after weil the verb is at the end.
    joins_main: bool = False


@dataclass(frozen=True)
class Question:
    """A question word that stands for no nominal."""

    german: str
    english: str


@dataclass(frozen=True)
class Sentence:
    main: Clause
    # The part before the German verb; with "verb" there is none, as in a question.
    first: Literal["subject", "time", "accusative", "dative", "verb", "clause"] = "subject"
    # The way another clause is joined; it comes first if `first` is "clause".
    conjunction: Conjunction | None = None
    other: Clause | None = None
    question: Question | None = None
