"""Writes a meaning in English: the verb follows the subject; questions and negations use `do`."""

from talkconv.data.toy import english_forms as forms
from talkconv.data.toy.german import is_indefinite
from talkconv.data.toy.lexicon import A
from talkconv.data.toy.meaning import (
    Clause,
    Couple,
    Gap,
    Nominal,
    Phrase,
    Place,
    Pronoun,
    Relative,
    Sentence,
)

Words = list[str]


def sentence(said: Sentence) -> str:
    """Return the written sentence."""
    main, first = said.main, said.first
    if said.question is not None:
        return _written([said.question.english, *clause(main, inverted=True)], "?")
    if first == "verb":
        return _written(clause(main, inverted=True), "?")
    asked = {"accusative": main.accusative, "dative": main.dative}.get(first)
    if _is_who(asked):
        return _written([*_whom(main, first), *clause(main, inverted=True, without=first)], "?")
    if first == "time":
        assert main.time is not None
        words = [main.time.english, *clause(main, without="time")]
    else:
        words = clause(main)
    if said.conjunction is not None and said.other is not None:
        comma = [","] if said.conjunction.joins_main else []
        other = [said.conjunction.english, *clause(said.other)]
        words = [*other, ",", *words] if first == "clause" else [*words, *comma, *other]
    return _written(words, "?" if _is_who(main.subject) else ".")


def _is_who(part: Nominal | None) -> bool:
    return isinstance(part, Pronoun) and part.english == "who"


def clause(said: Clause, *, inverted: bool = False, without: str = "") -> Words:
    """Return a clause except the part `without`; if inverted, the auxiliary comes first."""
    auxiliary, rest = _verbs(said, inverted)
    subject = [] if said.subject is None else nominal(said.subject, subject=True)
    negation = ["not"] if said.negated and said.subject is not None else []
    if auxiliary == ["can"] and negation and not inverted:
        auxiliary, negation = ["cannot"], []
    words = [*auxiliary, *subject] if inverted else [*subject, *auxiliary]
    time = None if without == "time" else said.time
    if time is not None and time.in_the_middle:
        negation += [time.english]
    words += [*negation, *_with_objects(rest, said, without)]
    if said.place is not None:
        words += _place(said.place)
    if time is not None and not time.in_the_middle:
        words += [time.english]
    if said.complement is not None:
        that = [] if said.complement.subject is None else ["that"]
        words += [*that, *clause(said.complement)]
    return words


def _verbs(said: Clause, inverted: bool) -> tuple[Words, Words]:
    """Return the auxiliary, if there is one, and the words after it."""
    verb = said.verb
    if said.subject is None:
        return [], ["to", verb.english]
    cell = said.subject.person - 1 + 3 * said.subject.plural
    if said.tense == "future":
        return ["will"], [verb.english]
    if said.modal is not None and said.modal.auxiliary:
        return [said.modal.auxiliary], [verb.english]
    if verb.english == "be" and said.modal is None:
        return [(forms.BE if said.tense == "present" else forms.WAS)[cell]], []
    head, rest = verb.english, []
    if said.modal is not None:
        head, rest = said.modal.verb, ["to", verb.english]
    asks = inverted and not _is_who(said.subject)
    third = cell == forms.THIRD_PERSON
    if said.negated or asks:
        do = "did" if said.tense == "past" else "does" if third else "do"
        return [do], [head, *rest]
    if said.tense == "past":
        return [], [verb.english_past]
    return [], [forms.third(head) if third else head, *rest]


def _with_objects(verbs: Words, said: Clause, without: str) -> Words:
    """Put the particle in its place: wake up the child, but wake him up."""
    objects = _objects(said, without)
    particle = said.verb.english.split()[-1]
    if isinstance(said.accusative, Pronoun) and particle in forms.PARTICLES:
        return [*verbs[:-1], verbs[-1].removesuffix(f" {particle}"), *objects, particle]
    return [*verbs, *objects]


def _objects(said: Clause, without: str) -> Words:
    words: Words = []
    if said.dative is not None and without != "dative":
        words += nominal(said.dative)
    if said.accusative is not None and without != "accusative":
        any_of_it = said.negated and is_indefinite(said.accusative)
        words += nominal(said.accusative, any_of_it=any_of_it)
    if said.quality is not None:
        adjective, than = said.quality.adjective, said.quality.than
        if than is None:
            words += [adjective.english]
        else:
            words += [adjective.english_comparative, "than", *nominal(than)]
    return words


def nominal(part: Nominal, *, subject: bool = False, any_of_it: bool = False) -> Words:
    if isinstance(part, Gap):
        return []
    if isinstance(part, Pronoun):
        return [part.english if subject else part.english_object]
    if isinstance(part, Couple):
        return [*nominal(part.first), "and", *nominal(part.second)]
    words = [forms.number(part.number)] if part.number is not None else []
    if part.adjective is not None:
        words += [part.adjective.english]
    words += [part.noun.english_plural if part.plural else part.noun.english]
    if part.owner is not None:
        words = [*_possessive(part.owner), *words]
    else:
        words = [*_determiner(part, words[0], any_of_it), *words]
    if part.relative is not None:
        words += _relative(part.relative, person=part.noun.kind == "person")
    return words


def _determiner(part: Phrase, following: str, any_of_it: bool) -> Words:
    if part.plural:
        word = "any" if any_of_it else part.determiner.english_plural
    elif part.determiner is A:
        word = forms.article(following)
    else:
        word = part.determiner.english
    return [word] if word else []


def _possessive(owner: Phrase) -> Words:
    *words, last = nominal(owner)
    return [*words, last + ("'" if last.endswith("s") else "'s")]


def _relative(relative: Relative, person: bool) -> Words:
    subject = relative.role == "nominative"
    if relative.preposition is not None:
        return [
            relative.preposition.english,
            "whom" if person else "which",
            *clause(relative.clause),
        ]
    if person and not subject:
        return [*_whom(relative.clause, relative.role), *clause(relative.clause)]
    return ["who" if person else "that", *clause(relative.clause)]


def _whom(said: Clause, role: str) -> Words:
    """Return the relative pronoun of a person who is an object: whom, or to whom."""
    return ["to", "whom"] if role == "dative" and said.accusative is not None else ["whom"]


def _place(place: Place) -> Words:
    if isinstance(place.phrase, Gap):
        return []
    return [place.preposition.english, *nominal(place.phrase)]


def _written(words: Words, end: str) -> str:
    text = " ".join(words).replace(" ,", ",")
    return text[0].upper() + text[1:] + end
