"""Moses' normalization, tokenization and detokenization, through sacremoses."""

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer


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
        self._normalizer = MosesPunctNormalizer(lang) if normalize else None
        self._tokenizer = MosesTokenizer(lang)
        self._detokenizer = MosesDetokenizer(lang)

    def tokenize(self, text: str) -> str:
        """A raw sentence to words between single spaces, with Moses' escapes."""
        if self.lowercase:
            text = text.lower()
        if self._normalizer is not None:
            text = self._normalizer.normalize(text)
        words = self._tokenizer.tokenize(
            text, aggressive_dash_splits=self.split_hyphens, return_str=True
        )
        return str(words).strip()

    def detokenize(self, words: str) -> str:
        """Words back to a sentence."""
        return str(self._detokenizer.detokenize(words.split()))
