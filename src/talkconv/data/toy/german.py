"""Writes a meaning in German: the verb is second in main clauses and last in subordinate ones."""

from typing import Literal

from talkconv.data.toy import german_forms as forms
from talkconv.data.toy.lexicon import A
from talkconv.data.toy.meaning import (
    Case,
    Clause,
    Couple,
    Gap,
    Nominal,
    Phrase,
    Place,
    Preposition,
    Pronoun,
    Sentence,
)

Words = list[str]
# "first" puts the verb before everything else; "zu" is a clause without a finite verb.
Order = Literal["first", "last", "zu"]

_CONTRACTED = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}


def sentence(said: Sentence) -> str:
    """Return the written sentence."""
    main, first = said.main, said.first
    end = "." if _is_statement(said) else "?"
    if said.conjunction is None or said.other is None:
        words = [said.question.german] if said.question else []
        return _written([*words, *_verb_second(main, first)], end)
    if said.conjunction.joins_main:
        joined = [",", said.conjunction.german, *_verb_second(said.other, "subject")]
        return _written([*_verb_second(main, first), *joined], end)
    other = [said.conjunction.german, *clause(said.other, "last")]
    if first == "clause":
        return _written([*other, ",", *clause(main, "first")], end)
    return _written([*_verb_second(main, first), ",", *other], end)


def _is_statement(said: Sentence) -> bool:
    asked = {
        "subject": said.main.subject,
        "accusative": said.main.accusative,
        "dative": said.main.dative,
    }.get(said.first)
    who = isinstance(asked, Pronoun) and asked.nominative == "wer"
    return said.first != "verb" and not who


def _verb_second(said: Clause, first: str) -> Words:
    """Return a main clause with the named part before its verb."""
    if first == "time":
        assert said.time is not None
        return [said.time.german, *clause(said, "first", without="time")]
    if first == "verb":
        return clause(said, "first")
    cases: dict[str, tuple[Case, Nominal | None]] = {
        "subject": ("nominative", said.subject),
        "accusative": ("accusative", said.accusative),
        "dative": ("dative", said.dative),
    }
    case, part = cases[first]
    assert part is not None
    return [*nominal(part, case), *clause(said, "first", without=first)]


def clause(said: Clause, order: Order, without: str = "") -> Words:
    """Return a clause except the part `without`, which comes elsewhere."""
    finite, rest = _verbs(said)
    particle = said.verb.particle
    middle, late = _middle(said, without)
    if order == "first":
        # An infinitive includes its particle.
        separated = [particle] if particle and not rest else []
        words = [finite, *middle, *separated, *rest]
    elif order == "last":
        joined = finite if rest else particle + finite
        words = [*middle, *rest, joined]
    else:
        words = [*middle, forms.with_zu(said.verb)]
    return [*words, *late, *_complement(said)]


def _verbs(said: Clause) -> tuple[str, Words]:
    """Return the finite verb, and the words at the end of a main clause."""
    verb = said.verb
    if said.subject is None:
        return "", []
    cell = said.subject.person - 1 + 3 * said.subject.plural
    infinitive = verb.particle + verb.infinitive
    if said.modal is not None:
        return forms.modal(said.modal.infinitive, said.modal.singular)[cell], [infinitive]
    if said.tense == "future":
        return forms.auxiliary("werden")[cell], [infinitive]
    if said.tense == "present":
        return forms.present(verb)[cell], []
    if verb.infinitive == "sein":
        return forms.WAS[cell], []
    return forms.auxiliary("sein" if verb.with_sein else "haben")[cell], [verb.participle]


def _middle(said: Clause, without: str) -> tuple[Words, Words]:
    """Return the words between the parts of the verb, and the clause that follows them."""
    objects: dict[Case, Nominal | None] = {"dative": said.dative, "accusative": said.accusative}
    objects = {case: part for case, part in objects.items() if case != without}
    words: Words = []
    if said.subject is not None and without != "subject":
        words += nominal(said.subject, "nominative")
    # Pronouns come first, and the accusative is the first of them.
    for case, part in reversed(objects.items()):
        if isinstance(part, Pronoun):
            words += nominal(part, case)
    if said.time is not None and without != "time":
        words += [said.time.german]
    late: Words = []
    none_of_it = said.negated and is_indefinite(said.accusative)
    for case, part in objects.items():
        if isinstance(part, (Phrase, Couple)):
            words += late
            negated = none_of_it and case == "accusative"
            core, late = _apart(part, case, negated=negated)
            words += core
    if said.negated and not none_of_it:
        words += ["nicht"]
    if said.place is not None:
        words += late
        core, late = _place(said.place)
        words += core
    if said.quality is not None:
        words += _quality(said)
    return words, late


def _quality(said: Clause) -> Words:
    assert said.quality is not None
    adjective, than = said.quality.adjective, said.quality.than
    if than is None:
        return [adjective.german]
    return [adjective.comparative, "als", *nominal(than, "nominative")]


def _complement(said: Clause) -> Words:
    if said.complement is None:
        return []
    if said.complement.subject is None:
        return [",", *clause(said.complement, "zu")]
    return [",", "dass", *clause(said.complement, "last")]


def is_indefinite(part: Nominal | None) -> bool:
    """Return whether German negates it with kein."""
    return isinstance(part, Phrase) and part.determiner is A and part.number is None


def nominal(part: Nominal, case: Case) -> Words:
    core, relative = _apart(part, case)
    return [*core, *relative]


def _apart(part: Nominal, case: Case, *, negated: bool = False) -> tuple[Words, Words]:
    """Return the words that stay together, and the relative clause, which may come later."""
    if isinstance(part, Gap):
        return [], []
    if isinstance(part, Pronoun):
        form = {
            "nominative": part.nominative,
            "accusative": part.accusative,
            "dative": part.dative,
        }
        return [form[case]], []
    if isinstance(part, Couple):
        return [*nominal(part.first, case), "und", *nominal(part.second, case)], []
    determiner = "kein" if negated else forms.written_determiner(part)
    words = [forms.determiner(determiner, case, part.gender)] if determiner else []
    if part.number is not None:
        words += [forms.number(part.number)]
    if part.adjective is not None:
        words += [forms.adjective(part.adjective, determiner, case, part.gender)]
    words += [forms.noun(part.noun, case, plural=part.plural)]
    if part.owner is not None:
        words += nominal(part.owner, "genitive")
    return words, _relative(part)


def _relative(part: Phrase) -> Words:
    relative = part.relative
    if relative is None:
        return []
    preposition = [relative.preposition.german] if relative.preposition else []
    pronoun = forms.relative_pronoun(relative.role, part.gender)
    return [",", *preposition, pronoun, *clause(relative.clause, "last"), ","]


def _place(place: Place) -> tuple[Words, Words]:
    core, relative = _apart(place.phrase, place.preposition.case)
    if not core:
        return [], []
    return [*_contracted(place.preposition, core, bool(relative))], relative


def _contracted(preposition: Preposition, words: Words, points: bool) -> Words:
    """Contract in dem to im, unless a relative clause follows the noun."""
    pair = (preposition.german, words[0])
    if pair in _CONTRACTED and not points:
        return [_CONTRACTED[pair], *words[1:]]
    return [preposition.german, *words]


def _written(words: Words, end: str) -> str:
    text = " ".join(words).replace(" ,", ",")
    while ",," in text:
        text = text.replace(",,", ",")
    return text[0].upper() + text[1:].rstrip(",") + end
