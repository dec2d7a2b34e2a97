"""Makes random clauses, each with one meaning in German.

In German, a feminine, a neuter or a plural has the same form as subject and as object. If nothing
else tells them apart, the subject comes first, and no clause needs the other order.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from talkconv.data.toy import lexicon
from talkconv.data.toy.lexicon import ADJECTIVES, EVERY, NOUNS, OWN, PRONOUNS, THE, THIS, TIMES, A
from talkconv.data.toy.meaning import (
    Case,
    Clause,
    Couple,
    Gap,
    Nominal,
    Phrase,
    Place,
    Pronoun,
    Quality,
    Relative,
    Tense,
    Time,
    Verb,
)
from talkconv.data.toy.verbs import BE, MODALS, VERBS

T = TypeVar("T")

PERSONS = frozenset(("person",))
_COMPANY = frozenset(("person", "animal"))
_SITES = frozenset(("place", "building"))
_DESCRIBED = frozenset(("person", "animal", "text", "food", "thing", "vehicle", "building"))
_TENSES: tuple[Tense, ...] = ("present",) * 5 + ("past",) * 3 + ("future",)
_WEATHER = tuple(verb for verb in VERBS if "weather" in verb.subjects)
PLAIN_VERBS = tuple(verb for verb in VERBS if not verb.complement and verb not in _WEATHER)
# "sie" could mean her or them.
_OBJECTS: dict[Case, tuple[Pronoun, ...]] = {
    "accusative": (lexicon.I, lexicon.YOU, lexicon.HE, lexicon.WE, lexicon.YOU_ALL),
    "dative": PRONOUNS,
}
_DETERMINERS = (THE,) * 8 + (A,) * 5 + (THIS,) * 2 + OWN


class Clauses:
    """Makes any number of clauses; the same seed gives the same ones."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, things: Sequence[T]) -> T:
        return things[int(self.random.random() * len(things))]

    def clause(
        self, tense: Tense | None = None, *, relatives: bool = False, weather: float = 0.0
    ) -> Clause:
        when: Tense = self.pick(_TENSES) if tense is None else tense
        if self.chance(weather):
            return Clause(self.pick(_WEATHER), lexicon.IT, when)
        if self.chance(0.12):
            return self._description(when)
        said = self._with_objects(self._action(self.pick(PLAIN_VERBS), when, relatives), relatives)
        if said.place is None and not is_long(said) and self.chance(0.2):
            said = replace(said, place=self._somewhere())
        return _sensible(said)

    def aim(self) -> Clause:
        """Return an action that a person may try, without time, modal verb or negation."""
        verb = self.pick([verb for verb in PLAIN_VERBS if verb.subjects == PERSONS])
        return self._with_objects(Clause(verb, self.subject(PERSONS)), relatives=False)

    def time(self, tense: Tense) -> Time:
        return self.pick([time for time in TIMES if tense in time.tenses])

    def subject(
        self, kinds: frozenset[str], *, relatives: bool = False, owners: bool = True
    ) -> Nominal:
        if "person" in kinds and self.chance(0.25):
            return self.pick(PRONOUNS)
        first = self._phrase(kinds, relatives=relatives, owners=owners)
        second = self._phrase(kinds)
        whole = first.relative is None and first.owner is None
        if whole and EVERY not in (first.determiner, second.determiner) and self.chance(0.07):
            return Couple(first, second)
        return first

    def _action(self, verb: Verb, tense: Tense, relatives: bool) -> Clause:
        """Return a clause with a subject, and sometimes with a time, a modal verb or a negation."""
        subject = self.subject(verb.subjects, relatives=relatives, owners=not verb.dative)
        negated = self.chance(0.15)
        return Clause(
            verb,
            subject,
            tense,
            modal=self.pick(MODALS) if tense == "present" and self.chance(0.3) else None,
            negated=negated,
            time=self.time(tense) if not negated and self.chance(0.45) else None,
        )

    def _description(self, tense: Tense) -> Clause:
        subject = self.subject(_DESCRIBED)
        while isinstance(subject, Couple):
            subject = self.subject(_DESCRIBED)
        kind = "person"
        if isinstance(subject, Phrase):
            subject, kind = replace(subject, adjective=None), subject.noun.kind
        adjective = self.pick([word for word in ADJECTIVES if kind in word.kinds])
        compared = adjective.comparative and self.chance(0.5)
        than = replace(self._phrase(frozenset((kind,))), adjective=None) if compared else None
        negated = self.chance(0.2)
        return _sensible(
            Clause(BE, subject, tense, negated=negated, quality=Quality(adjective, than))
        )

    def _with_objects(self, said: Clause, relatives: bool) -> Clause:
        verb = said.verb
        if verb.dative:
            said = replace(said, dative=self._object(said, "dative", PERSONS))
        if verb.accusatives:
            part = (
                self._phrase(verb.accusatives, relatives=relatives, owners=True)
                if verb.dative
                else self._object(said, "accusative", verb.accusatives, relatives)
            )
            said = replace(said, accusative=part)
        if verb.preposition is not None:
            about = self._object(said, verb.preposition.case, _COMPANY, relatives)
            said = replace(said, place=Place(verb.preposition, about))
        if verb.directed:
            ways = lexicon.BACK if verb.particle else lexicon.DIRECTIONS
            said = replace(said, place=Place(self.pick(ways), self._phrase(_SITES, plural=False)))
        return said

    def _object(
        self, said: Clause, case: Case, kinds: frozenset[str], relatives: bool = False
    ) -> Nominal:
        if "person" in kinds and self.chance(0.2):
            # The object differs from the subject, because there are no reflexive pronouns.
            person = 3 if said.subject is None else said.subject.person
            return self.pick(
                [word for word in _OBJECTS[case] if person == 3 or word.person != person]
            )
        return self._phrase(kinds, relatives=relatives, owners=case != "dative")

    def _phrase(
        self,
        kinds: frozenset[str],
        *,
        plural: bool | None = None,
        relatives: bool = False,
        owners: bool = False,
    ) -> Phrase:
        noun = self.pick([word for word in NOUNS if word.kind in kinds])
        plural = self.chance(0.3) if plural is None else plural
        determiner = self.pick(_DETERMINERS if plural else (*_DETERMINERS, EVERY))
        phrase = Phrase(noun, determiner, plural)
        if plural and determiner in (THE, A) and self.chance(0.35):
            phrase = replace(phrase, number=2 + int(98 * self.random.random()))
        if self.chance(0.3):
            fitting = [word for word in ADJECTIVES if noun.kind in word.kinds]
            phrase = replace(phrase, adjective=self.pick(fitting))
        if relatives and self.chance(0.25):
            return replace(phrase, relative=self._relative(phrase))
        if owners and determiner is THE and noun.kind != "person" and self.chance(0.3):
            return replace(phrase, owner=self._owner())
        return phrase

    def _owner(self) -> Phrase:
        owner = self._phrase(PERSONS)
        # A genitive is visible only with a determiner.
        return replace(owner, determiner=THE) if owner.plural and owner.determiner is A else owner

    def _relative(self, phrase: Phrase) -> Relative:
        gap = Gap(phrase.plural)
        kind = phrase.noun.kind
        verb = self.pick([verb for verb in PLAIN_VERBS if _roles(verb, kind)])
        role = self.pick(_roles(verb, kind))
        said = Clause(verb, self.subject(verb.subjects, owners=False), self.pick(_TENSES))
        if role == "nominative":
            said = self._with_objects(replace(said, subject=gap), relatives=False)
            return Relative("nominative", _sensible(replace(said, negated=self.chance(0.15))))
        if role == "accusative" and phrase.gender != "m":
            while not shows_subject(said.subject):
                said = replace(said, subject=self.subject(verb.subjects, owners=False))
        said = self._with_objects(said, relatives=False)
        if role == "accusative":
            return Relative(role, replace(said, accusative=gap))
        if role == "dative":
            return Relative(role, replace(said, dative=gap))
        assert verb.preposition is not None
        case = verb.preposition.case
        return Relative(case, replace(said, place=Place(verb.preposition, gap)), verb.preposition)

    def _somewhere(self) -> Place:
        preposition = self.pick(lexicon.PLACES)
        inside = frozenset(("place", "building", "room"))
        kinds = inside if preposition is lexicon.IN else frozenset(("building",))
        return Place(preposition, self._phrase(kinds, plural=False))


def _roles(verb: Verb, kind: str) -> list[Case]:
    """Return the cases of a noun of that kind with the verb; "genitive" is its preposition."""
    may_be: dict[Case, bool] = {
        "nominative": kind in verb.subjects,
        "accusative": kind in verb.accusatives,
        "dative": verb.dative and kind == "person",
        "genitive": verb.preposition is not None and kind in _COMPANY,
    }
    return [role for role, possible in may_be.items() if possible]


def shows_object(part: Nominal | None) -> bool:
    """Return whether its form shows that it is not a subject."""
    if isinstance(part, Pronoun):
        return part.nominative != part.accusative and part.person < 3 and not part.plural
    return isinstance(part, Phrase) and part.gender == "m"


def shows_subject(part: Nominal | None) -> bool:
    """Return whether its form shows that it is not an object."""
    if isinstance(part, Pronoun):
        return part.nominative != part.accusative
    return isinstance(part, Phrase) and part.gender == "m"


def _parts(said: Clause) -> list[Nominal]:
    where = said.place.phrase if said.place is not None else None
    than = said.quality.than if said.quality is not None else None
    parts = (said.subject, said.dative, said.accusative, where, than)
    return [part for part in parts if part is not None]


def is_long(said: Clause) -> bool:
    """Return whether it contains a relative clause."""
    return any(isinstance(part, Phrase) and part.relative for part in _parts(said))


def _sensible(said: Clause) -> Clause:
    """Remove the negation from a clause with "every", because both together have two meanings."""
    every = any(isinstance(part, Phrase) and part.determiner is EVERY for part in _parts(said))
    return replace(said, negated=False) if every else said
