"""The rules between raw text and the words that a vocabulary is made of, for one language."""

from collections.abc import Mapping
from typing import Any

from talkconv.data.bpe import Pair
from talkconv.data.moses import Moses, lowercased
from talkconv.data.segmentation import Segmenter, is_segmented, undo_marks
from talkconv.data.vocabulary import split_at_spaces

# settings that hold for the rules of every tokenizer, and those that only Moses knows
LOWERCASE, MOSES_SETTINGS = "lowercase", ("normalize", "split_hyphens")


class TextRules:
    """Splits raw text at spaces, because others tokenized it; they may have segmented it, too.

    >>> rules = TextRules(lowercase=True)
    >>> rules.subwords("A play@@ house .")
    'a play@@ house .'
    >>> rules.words("A play@@ house .")
    'a playhouse .'
    """

    def __init__(self, *, lowercase: bool = False, segmenter: Segmenter | None = None) -> None:
        self.lowercase = lowercase
        self.segmenter = segmenter

    def words(self, text: str) -> str:
        """Return the words of a text between single spaces: tokenized BLEU is computed on them."""
        return self.join(self._split(text))

    def subwords(self, text: str) -> str:
        """Return the words as the vocabulary gets them, with marks where they are segmented."""
        words = self._split(text)
        if self.segmenter is None or is_segmented(words):
            return words
        return self.segmenter.segment(words)

    def join(self, subwords: str) -> str:
        """Return the words that subwords() segmented."""
        return undo_marks(subwords)

    def text(self, words: str) -> str:
        """Return the raw text of words."""
        return words

    def reference(self, text: str) -> str:
        """Return a raw text in the form of text(), so that outputs can be compared with it."""
        return undo_marks(text)

    def _split(self, text: str) -> str:
        return split_at_spaces(lowercased(text) if self.lowercase else text)


class MosesRules(TextRules):
    """Tokenizes raw text with Moses, and turns words into raw text with its detokenizer.

    >>> MosesRules(Moses("en")).words("Don't stop.")
    'Don &apos;t stop .'
    """

    def __init__(self, moses: Moses, *, segmenter: Segmenter | None = None) -> None:
        super().__init__(segmenter=segmenter)
        self.moses = moses

    def words(self, text: str) -> str:
        return self.moses.tokenize(text)

    def subwords(self, text: str) -> str:
        words = self.words(text)
        return words if self.segmenter is None else self.segmenter.segment(words)

    def join(self, subwords: str) -> str:
        return subwords if self.segmenter is None else undo_marks(subwords)

    def text(self, words: str) -> str:
        return self.moses.detokenize(words)

    def reference(self, text: str) -> str:
        return text


def make_rules(
    tokenizer: str, lang: str, settings: Mapping[str, Any], codes: list[Pair] | None = None
) -> TextRules:
    """Make the rules of a tokenizer ("moses" or "none") with the settings of a recipe."""
    segmenter = None if codes is None else Segmenter(codes)
    lowercase = bool(settings[LOWERCASE])
    if tokenizer == "none":
        return TextRules(lowercase=lowercase, segmenter=segmenter)
    assert tokenizer == "moses", f"{tokenizer=}"
    of_moses = {name: bool(settings[name]) for name in MOSES_SETTINGS}
    return MosesRules(Moses(lang, lowercase=lowercase, **of_moses), segmenter=segmenter)
