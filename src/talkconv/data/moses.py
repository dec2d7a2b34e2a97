"""Moses' scripts: lower case, normalization, tokenization and detokenization.

Normalization and detokenization are those of sacremoses.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from talkconv.data.moses_words import MosesWords
from talkconv.data.protected import SYMBOL, Protected

_ESCAPES = str.maketrans(
    {
        "&": "&amp;",
        "|": "&#124;",
        "<": "&lt;",
        ">": "&gt;",
        "'": "&apos;",
        '"': "&quot;",
        "[": "&#91;",
        "]": "&#93;",
    }
)


class _Normalizer:
    """The normalization rules of sacremoses, compiled once and not for every sentence."""

    def __init__(self, lang: str) -> None:
        # Importing sacremoses takes a second, and commands without Moses do not need it.
        from sacremoses import MosesPunctNormalizer

        rules = MosesPunctNormalizer(lang, perl_parity=True).substitutions
        self._rules = [
            (None if re.escape(old) == old else re.compile(old), old, new) for old, new in rules
        ]

    def normalize(self, text: str) -> str:
        # Perl sees the line feed at the end, and some of its rules match it.
        text += "\n"
        for pattern, old, new in self._rules:
            text = pattern.sub(new, text) if pattern else text.replace(old, new)
        return text.strip()


class Moses:
    """Moses' scripts for one language.

    >>> Moses("en", lowercase=True).tokenize("Don't stop.")
    'don &apos;t stop .'
    >>> Moses("en", protected=["%[a-z]"]).tokenize("Delete %s?")
    'Delete %s ?'
    """

    def __init__(
        self,
        lang: str,
        *,
        lowercase: bool = False,
        normalize: bool = False,
        split_hyphens: bool = False,
        protected: Sequence[str] = (),
    ) -> None:
        self.lowercase = lowercase
        self._normalizer = _Normalizer(lang) if normalize else None
        self._words = MosesWords(lang, split_hyphens=split_hyphens)
        self._lang = lang
        self._protected = Protected(protected)

    def tokenize(self, text: str) -> str:
        """Split a raw sentence into words between single spaces, with Moses' escapes."""
        text, kept = self._protected.hide(text, f" {SYMBOL} ")
        words = escaped(" ".join(self._words.split(self._clean(text))))
        return self._protected.show(words, map(escaped, kept))

    def cleaned(self, text: str) -> str:
        """Return a text that is not split, but in lower case and normalized if so configured."""
        text, kept = self._protected.hide(text)
        return self._protected.show(self._clean(text), kept)

    def detokenize(self, words: str) -> str:
        """Join words to a sentence."""
        return str(_detokenizer(self._lang).detokenize(words.split()))

    def _clean(self, text: str) -> str:
        if self.lowercase:
            text = lowercased(text)
        return text if self._normalizer is None else _printing(self._normalizer.normalize(text))


@cache
def _detokenizer(lang: str) -> Any:
    from sacremoses import MosesDetokenizer

    return MosesDetokenizer(lang)


def escaped(text: str) -> str:
    """Return a text with Moses' escapes.

    >>> escaped("<b>")
    '&lt;b&gt;'
    """
    return text.translate(_ESCAPES)


def lowercased(text: str) -> str:
    """Return a text in lower case, as Moses' lowercase.perl writes it."""
    # Python writes another small sigma at the end of a word, but Perl does not.
    return text.replace("Σ", "σ").lower()


def _printing(text: str) -> str:
    """Replace each character of Unicode's category C by a space, as Moses does."""
    if text.isprintable():
        return text
    return "".join(" " if unicodedata.category(char).startswith("C") else char for char in text)
