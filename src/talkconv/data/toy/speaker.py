"""Makes random sentences: statements, questions, and sentences of two clauses."""

from dataclasses import replace
from typing import Literal

from talkconv.data.toy import lexicon
from talkconv.data.toy.clauses import PERSONS, Clauses, is_long, shows_object
from talkconv.data.toy.german import is_indefinite
from talkconv.data.toy.lexicon import A
from talkconv.data.toy.meaning import Clause, Phrase, Sentence, Tense
from talkconv.data.toy.verbs import BE, VERBS

_TOLD: tuple[Tense, ...] = ("present", "present", "past")
_THAT_VERBS = tuple(verb for verb in VERBS if verb.complement == "dass")
_TO_VERBS = tuple(verb for verb in VERBS if verb.complement == "zu")


class Speaker(Clauses):
    """Makes any number of sentences; the same seed gives the same ones.

    >>> Speaker("seed").sentence() == Speaker("seed").sentence()
    True
    """

    def sentence(self) -> Sentence:
        kinds = {
            self._statement: 50,
            self._with_clause: 16,
            self._question: 14,
            self._report: 9,
            self._attempt: 6,
            self._contrast: 5,
        }
        (kind,) = self.random.choices(list(kinds), list(kinds.values()))
        return kind()

    def _statement(self) -> Sentence:
        main = self.clause(relatives=True)
        return Sentence(main, self._first(main))

    def _first(self, main: Clause) -> Literal["subject", "time", "accusative", "dative"]:
        """Return the part before the verb; it is an object only if its form shows the case."""
        # After a relative clause, an English reader would think that the time belongs to it.
        late = is_long(main) and main.time is not None and not main.time.in_the_middle
        if main.time is not None and main.time.may_begin and (late or self.chance(0.5)):
            return "time"
        if main.dative is not None:
            shows = isinstance(main.dative, Phrase) and not (
                main.dative.plural and main.dative.determiner is A
            )
            return "dative" if shows and self.chance(0.25) else "subject"
        shows = shows_object(main.accusative)
        if shows and not (main.negated and is_indefinite(main.accusative)) and self.chance(0.3):
            return "accusative"
        return "subject"

    def _with_clause(self) -> Sentence:
        conjunction = self.pick(lexicon.SUBORDINATES)
        # wenn is for events that repeat or may happen.
        tense = "present" if conjunction.german == "wenn" else self.pick(_TOLD)
        main, other = self.clause(tense), self.clause(tense, weather=0.15)
        if conjunction.german == "bevor":
            other = replace(other, negated=False)
        first = "clause" if self.chance(0.4) else self._first(main)
        return Sentence(main, first, conjunction, other)

    def _contrast(self) -> Sentence:
        tense = self.pick(_TOLD)
        main, other = self.clause(tense), self.clause(tense)
        return Sentence(main, self._first(main), lexicon.BUT, other)

    def _report(self) -> Sentence:
        tense = self.pick(_TOLD)
        told = self.clause("past" if tense == "past" else None, weather=0.1)
        return Sentence(
            Clause(self.pick(_THAT_VERBS), self.subject(PERSONS), tense, complement=told)
        )

    def _attempt(self) -> Sentence:
        tense = self.pick(_TOLD)
        aim = self.aim()
        time = self.time(tense) if self.chance(0.3) else None
        complement = replace(aim, subject=None)
        main = Clause(self.pick(_TO_VERBS), aim.subject, tense, time=time, complement=complement)
        return Sentence(main, "time" if time and time.may_begin else "subject")

    def _question(self) -> Sentence:
        main = replace(self.clause(), negated=False)
        kind = self.random.random()
        if kind < 0.4 or main.verb is BE:
            return Sentence(main, "verb")
        if kind < 0.6:
            question = self.pick(lexicon.QUESTIONS)
            keeps_place = question.german != "wo" or main.verb.preposition is not None
            if question.german == "wo" and main.verb.directed:
                return Sentence(main, "verb")
            place = main.place if keeps_place else None
            return Sentence(replace(main, time=None, place=place), "verb", question=question)
        if kind < 0.8 and "person" in main.verb.subjects:
            return Sentence(replace(main, subject=lexicon.WHO))
        if main.dative is not None:
            return Sentence(replace(main, dative=lexicon.WHO), "dative")
        if "person" in main.verb.accusatives:
            return Sentence(replace(main, accusative=lexicon.WHO), "accusative")
        return Sentence(main, "verb")
