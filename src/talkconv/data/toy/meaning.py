"""What a sentence means, before either language puts it into words."""

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
        """der Junge, den Jungen, dem Jungen, des Jungen: all but the first as in the plural."""
        return self.gender == "m" and self.genitive.endswith("n")


@dataclass(frozen=True)
class Adjective:
    german: str
    # what endings are added to: teuer, but teur-e
    stem: str
    english: str
    # "" for what knows no degrees
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
    """What it is, and what it takes. Forms that follow from these are in the languages' files."""

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
    # "dass", "zu" or neither
    complement: str = ""


@dataclass(frozen=True)
class Modal:
    """In English either an auxiliary before the verb (can), or a verb before its `to` (want to)."""

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
    """A noun with what belongs to it."""

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
    """A and B."""

    first: Phrase
    second: Phrase

    person = 3
    plural = True


@dataclass(frozen=True)
class Gap:
    """Where, in its relative clause, the noun would stand that the clause is about."""

    plural: bool

    person = 3


Nominal = Phrase | Couple | Pronoun | Gap


@dataclass(frozen=True)
class Relative:
    """A clause in which one nominal is a Gap."""

    role: Case
    clause: Clause
    # of the Gap: the man with whom she speaks
    preposition: Preposition | None = None


@dataclass(frozen=True)
class Place:
    preposition: Preposition
    phrase: Nominal


@dataclass(frozen=True)
class Quality:
    """What a thing is: old, or older than another."""

    adjective: Adjective
    than: Phrase | None = None


@dataclass(frozen=True)
class Clause:
    verb: Verb
    # None where another clause's subject acts: she tries to read
    subject: Nominal | None
    tense: Tense = "present"
    modal: Modal | None = None
    negated: bool = False
    time: Time | None = None
    dative: Nominal | None = None
    accusative: Nominal | None = None
    # what the verb's preposition is about, where it happens, or where it leads
    place: Place | None = None
    quality: Quality | None = None
    complement: Clause | None = None


@dataclass(frozen=True)
class Conjunction:
    german: str
    english: str
    # aber joins main clauses, weil sends the verb to the end
    joins_main: bool = False


@dataclass(frozen=True)
class Question:
    """A question word that is no nominal."""

    german: str
    english: str


@dataclass(frozen=True)
class Sentence:
    main: Clause
    # what stands before the German verb; "verb": nothing does, as in a question
    first: Literal["subject", "time", "accusative", "dative", "verb", "clause"] = "subject"
    # how another clause joins in, before the main one if first is "clause"
    conjunction: Conjunction | None = None
    other: Clause | None = None
    question: Question | None = None
