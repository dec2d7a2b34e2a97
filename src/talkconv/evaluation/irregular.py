"""The irregular English forms that ROUGE-1.5.5 knows: WordNet 2.0's exception lists.

ROUGE-1.5.5 looks each word up in these lists before it stems, and takes what it finds unstemmed:
*left* becomes *leave*, although *leaving* becomes *leav*.
"""

from functools import cache
from pathlib import Path

LIST = Path(__file__).with_name("irregular.txt")


def base_form(word: str) -> str | None:
    """Return the word that an irregular form belongs to, or None if the lists do not have it.

    >>> base_form("taught"), base_form("denied"), base_form("teaching")
    ('teach', 'deny', None)
    """
    return irregular_forms().get(word)


@cache
def irregular_forms() -> dict[str, str]:
    """Return the base of each irregular form."""
    lines = LIST.read_text(encoding="ascii").splitlines()
    entries = (line.split() for line in lines if not line.startswith("#"))
    return {form: base for base, *forms in entries for form in forms}
