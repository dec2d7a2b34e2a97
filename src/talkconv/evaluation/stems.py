"""Stems English words as ROUGE-1.5.5 or as rouge-score does.

ROUGE-1.5.5 takes the base of an irregular form from WordNet's lists, and stems other words with
Porter's algorithm with a changed fourth step. rouge-score stems every word with NLTK's extended
form of the algorithm.
"""

import re
from functools import lru_cache

from nltk.stem.porter import PorterStemmer

from talkconv.evaluation.irregular import base_form

# Step 4 removes at most one suffix of each group, one group after the other. The published
# algorithm removes only one suffix.
_GROUPS = (
    re.compile("(al|ance|ence|er|ic|able|ible|ant|ement|ou|ism|ate|iti|ous|ive|ize)$"),
    re.compile("ment$"),
    re.compile("(ent|(?<=[st])ion)$"),
)
# A suffix is removed only if at least two vowel-consonant sequences are before it.
_LONG_ENOUGH = re.compile(r"([^aeiou][^aeiouy]*)?([aeiouy][aeiou]*[^aeiou][^aeiouy]*){2}")


class _RougeStemmer(PorterStemmer):  # type: ignore[misc]
    def __init__(self) -> None:
        # the rules of Porter's own program, from which the Perl program was made
        super().__init__(mode=PorterStemmer.MARTIN_EXTENSIONS)

    def _step4(self, word: str) -> str:
        for suffixes in _GROUPS:
            match = suffixes.search(word)
            if match and _LONG_ENOUGH.match(_consonant_y(word[: match.start()])):
                word = word[: match.start()]
        return word


def _consonant_y(stem: str) -> str:
    """Replace a y at the start of a word, so that patterns treat it as a consonant."""
    return f"Y{stem[1:]}" if stem.startswith("y") else stem


_ROUGE, _EXTENDED = _RougeStemmer(), PorterStemmer()


@lru_cache(maxsize=262_144)
def stem_for_rouge(word: str) -> str:
    """Return a word's stem as ROUGE-1.5.5 finds it.

    >>> stem_for_rouge("left"), stem_for_rouge("leaving"), stem_for_rouge("accidentally")
    ('leave', 'leav', 'accid')
    """
    return base_form(word) or str(_ROUGE.stem(word))


@lru_cache(maxsize=262_144)
def stem_for_rouge_score(word: str) -> str:
    """Return a word's stem as rouge-score finds it.

    >>> stem_for_rouge_score("left"), stem_for_rouge_score("accidentally")
    ('left', 'accident')
    """
    return str(_EXTENDED.stem(word))
