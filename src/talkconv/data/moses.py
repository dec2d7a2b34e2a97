"""Moses' normalization, tokenization and detokenization, through sacremoses.

Where sacremoses answers otherwise than the Perl scripts, it is set right here.
"""

import re
import unicodedata

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer


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
    """One language's rules.

    >>> Moses("en", lowercase=True).tokenize("Don't stop.")
    'don &apos;t stop .'
    """

    def __init__(
        self,
        lang: str,
        *,
        lowercase: bool = False,
        normalize: bool = False,
        split_hyphens: bool = False,
    ) -> None:
        self.lowercase = lowercase
        self.split_hyphens = split_hyphens
        self._normalizer = _Normalizer(lang) if normalize else None
        self._tokenizer = _Tokenizer(lang)
        self._detokenizer = MosesDetokenizer(lang)

    def tokenize(self, text: str) -> str:
        """A raw sentence to words between single spaces, with Moses' escapes."""
        if self.lowercase:
            text = lowercased(text)
        if self._normalizer is not None:
            text = _printing(self._normalizer.normalize(text))
        words = self._tokenizer.tokenize(
            text, aggressive_dash_splits=self.split_hyphens, return_str=True
        )
        return " ".join(str(words).split())

    def detokenize(self, words: str) -> str:
        """Words back to a sentence."""
        return str(self._detokenizer.detokenize(words.split()))


def lowercased(text: str) -> str:
    """Return a text in lower case, as Moses' lowercase.perl writes it."""
    # Perl knows one small sigma, and Python another one for the end of a word.
    return text.replace("Σ", "σ").lower()


def _printing(text: str) -> str:
    """As Moses' remove-non-printing-char: a space for each character of Unicode's category C."""
    if text.isprintable():
        return text
    return "".join(" " if unicodedata.category(char).startswith("C") else char for char in text)
