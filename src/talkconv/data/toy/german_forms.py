"""Makes the forms of German words: declension, conjugation, numbers."""

from talkconv.data.toy.meaning import Adjective, Case, Noun, Phrase, Verb

_CASES = ("nominative", "accusative", "dative", "genitive")
_GENDERS = ("m", "f", "n", "p")


def _table(rows: str) -> dict[tuple[str, str], str]:
    """Read a table of endings: rows are cases, columns are genders and the plural; - is none."""
    lines = [line.split() for line in rows.strip().splitlines()]
    return {
        (case, gender): ending.strip("-")
        for case, line in zip(_CASES, lines, strict=True)
        for gender, ending in zip(_GENDERS, line, strict=True)
    }


_DER = _table(
    """
    der die das die
    den die das die
    dem der dem den
    des der des der
    """
)
_RELATIVE = _table(
    """
    der die das die
    den die das die
    dem der dem denen
    dessen deren dessen deren
    """
)
_DIESER = _table(
    """
    er e es e
    en e es e
    em er em en
    es er es er
    """
)
_EIN = _table(
    """
    - e - e
    en e - e
    em er em en
    es er es er
    """
)
_WEAK = _table(
    """
    e e e en
    en e e en
    en en en en
    en en en en
    """
)
_MIXED = _table(
    """
    er e es en
    en e es en
    en en en en
    en en en en
    """
)
_STRONG = _table(
    """
    er e es e
    en e es e
    em er em en
    en er en er
    """
)
# These take the endings of dieser. All others except der take the endings of ein.
_LIKE_DIESER = {"dieser": "dies", "jeder": "jed"}


def determiner(word: str, case: Case, gender: str) -> str:
    """Return a form of a determiner.

    >>> determiner("der", "dative", "f"), determiner("mein", "accusative", "m")
    ('der', 'meinen')
    """
    if word == "der":
        return _DER[case, gender]
    if word in _LIKE_DIESER:
        return _LIKE_DIESER[word] + _DIESER[case, gender]
    return word + _EIN[case, gender]


def adjective(word: Adjective, after: str, case: Case, gender: str) -> str:
    """Return a form of an adjective; `after` is the determiner before it, or ""."""
    if not after:
        table = _STRONG
    elif after == "der" or after in _LIKE_DIESER:
        table = _WEAK
    else:
        table = _MIXED
    return word.stem + table[case, gender]


def noun(word: Noun, case: Case, *, plural: bool) -> str:
    """Return a form of a noun.

    >>> from talkconv.data.toy.lexicon import noun as named
    >>> noun(named("Kind"), "dative", plural=True), noun(named("Junge"), "dative", plural=False)
    ('Kindern', 'Jungen')
    """
    if plural:
        takes_n = case == "dative" and word.german_plural[-1] not in "ns"
        return word.german_plural + "n" * takes_n
    if case == "genitive":
        return word.genitive
    return word.genitive if word.weak and case != "nominative" else word.german


def relative_pronoun(case: Case, gender: str) -> str:
    return _RELATIVE[case, gender]


def written_determiner(phrase: Phrase) -> str:
    """Return the base form of a determiner, or "" where there is none."""
    return "" if phrase.determiner.german == "ein" and phrase.plural else phrase.determiner.german


_IRREGULAR = {
    "sein": "bin bist ist sind seid sind",
    "haben": "habe hast hat haben habt haben",
    "werden": "werde wirst wird werden werdet werden",
    "wissen": "weiß weißt weiß wissen wisst wissen",
}
WAS = ["war", "warst", "war", "waren", "wart", "waren"]


def present(verb: Verb) -> list[str]:
    """Return the forms for ich, du, er, wir, ihr, sie, without a separable particle.

    >>> from talkconv.data.toy.verbs import verb as named
    >>> present(named("lesen"))
    ['lese', 'liest', 'liest', 'lesen', 'lest', 'lesen']
    """
    if verb.infinitive in _IRREGULAR:
        return auxiliary(verb.infinitive)
    infinitive, third = verb.infinitive, verb.third
    stem = infinitive.removesuffix("n").removesuffix("e")
    # An e makes these forms pronounceable: arbeit-e-t, öffn-e-t.
    link = "e" if third == stem + "et" else ""
    root = third[: -1 - len(link)]
    second = third if root[-1] in "sßxz" else f"{root}{link}st"
    plural_link = "e" if link or stem[-1] in "dt" else ""
    return [f"{stem}e", second, third, infinitive, f"{stem}{plural_link}t", infinitive]


def modal(infinitive: str, singular: str) -> list[str]:
    """Return the forms of a modal verb for ich, du, er, wir, ihr, sie.

    >>> modal("können", "kann")
    ['kann', 'kannst', 'kann', 'können', 'könnt', 'können']
    """
    stem = infinitive.removesuffix("en")
    second = singular + ("t" if singular[-1] == "s" else "st")
    return [singular, second, singular, infinitive, f"{stem}t", infinitive]


def auxiliary(infinitive: str) -> list[str]:
    return _IRREGULAR[infinitive].split()


def with_zu(verb: Verb) -> str:
    """Return the infinitive with zu: zu lesen, anzurufen."""
    joint = f"{verb.particle}zu" if verb.particle else "zu "
    return joint + verb.infinitive


_ONES = """
    null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn
    sechzehn siebzehn achtzehn neunzehn
"""
_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"


def number(n: int) -> str:
    """Return the word for a number from 2 to 99.

    >>> number(21), number(70), number(16)
    ('einundzwanzig', 'siebzig', 'sechzehn')
    """
    ones = _ONES.split()
    if n < 20:
        return ones[n]
    tens = _TENS.split()[n // 10 - 2]
    one = "ein" if n % 10 == 1 else ones[n % 10]
    return f"{one}und{tens}" if n % 10 else tens
