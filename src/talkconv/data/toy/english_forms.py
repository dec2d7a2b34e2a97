"""Makes the forms of English words: verbs, articles, numbers."""

BE = ["am", "are", "is", "are", "are", "are"]
WAS = ["was", "were", "was", "were", "were", "were"]
# These particles come after a pronoun: wake up the child, wake him up.
PARTICLES = {"along", "away", "up"}
# The verb takes an s in this one of ich, du, er, wir, ihr, sie.
THIRD_PERSON = 2


def third(base: str) -> str:
    """Return a form of a verb; only the first word of a phrasal verb changes.

    >>> third("tidy up"), third("go"), third("play with"), third("catch")
    ('tidies up', 'goes', 'plays with', 'catches')
    """
    first, *rest = base.split()
    if first == "have":
        first = "has"
    elif first[-1] == "y" and first[-2] not in "aeiou":
        first = first[:-1] + "ies"
    elif first.endswith(("s", "x", "z", "ch", "sh", "o")):
        first += "es"
    else:
        first += "s"
    return " ".join([first, *rest])


def article(following: str) -> str:
    """Return a or an; the first letter decides for every word of the lexicon."""
    return "an" if following[0] in "aeiou" else "a"


_ONES = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def number(n: int) -> str:
    """Return the word for a number from 2 to 99.

    >>> number(21), number(40)
    ('twenty-one', 'forty')
    """
    ones = _ONES.split()
    if n < 20:
        return ones[n]
    tens = _TENS.split()[n // 10 - 2]
    return f"{tens}-{ones[n % 10]}" if n % 10 else tens
