"""Moses' normalization, tokenization and detokenization, through sacremoses.

Where sacremoses answers otherwise than the Perl scripts, it is set right here.
"""

import re
import unicodedata
from collections.abc import Sequence

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

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
    """sacremoses' rules, looked up once and not for every sentence."""

    def __init__(self, lang: str) -> None:
        rules = MosesPunctNormalizer(lang, perl_parity=True).substitutions
        self._rules = [
            (None if re.escape(old) == old else re.compile(old), old, new) for old, new in rules
        ]

    def normalize(self, text: str) -> str:
        # Perl sees the end of the line, and some of its rules take it for a character
        text += "\n"
        for pattern, old, new in self._rules:
            text = pattern.sub(new, text) if pattern else text.replace(old, new)
        return text.strip()


class _Tokenizer(MosesTokenizer):  # type: ignore[misc]
    """sacremoses builds sets of some thousand characters anew for every word before a full stop."""

    _lower = frozenset(MosesTokenizer.IsLower)
    _alpha = frozenset(MosesTokenizer.IsAlpha)

    def __init__(self, lang: str) -> None:
        super().__init__(lang)
        for name in ("NONBREAKING_PREFIXES", "NUMERIC_ONLY_PREFIXES"):
            setattr(self, name, frozenset(getattr(self, name)))

    def islower(self, text: str) -> bool:
        return self._lower.issuperset(text)

    def isanyalpha(self, text: str) -> bool:
        return not self._alpha.isdisjoint(text)


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
        self.split_hyphens = split_hyphens
        self._normalizer = _Normalizer(lang) if normalize else None
        self._tokenizer = _Tokenizer(lang)
        self._detokenizer = MosesDetokenizer(lang)
        self._protected = Protected(protected)

    def tokenize(self, text: str) -> str:
        """Split a raw sentence into words between single spaces, with Moses' escapes."""
        text, kept = self._protected.hide(text, f" {SYMBOL} ")
        words = self._tokenizer.tokenize(
            self._clean(text), aggressive_dash_splits=self.split_hyphens, return_str=True
        )
        return self._protected.show(" ".join(str(words).split()), map(escaped, kept))

    def cleaned(self, text: str) -> str:
        """Return a text in lower case and normalized, if these rules say so, and not split."""
        text, kept = self._protected.hide(text)
        return self._protected.show(self._clean(text), kept)

    def detokenize(self, words: str) -> str:
        """Join words to a sentence."""
        return str(self._detokenizer.detokenize(words.split()))

    def _clean(self, text: str) -> str:
        if self.lowercase:
            text = lowercased(text)
        return text if self._normalizer is None else _printing(self._normalizer.normalize(text))


def escaped(text: str) -> str:
    """Return a text with Moses' escapes.

    >>> escaped("<b>")
    '&lt;b&gt;'
    """
    return text.translate(_ESCAPES)


def lowercased(text: str) -> str:
    """Return a text in lower case, as Moses' lowercase.perl writes it."""
    # Perl knows one small sigma, and Python another one for the end of a word.
    return text.replace("Σ", "σ").lower()


def _printing(text: str) -> str:
    """As Moses' remove-non-printing-char: a space for each character of Unicode's category C."""
    if text.isprintable():
        return text
    return "".join(" " if unicodedata.category(char).startswith("C") else char for char in text)
