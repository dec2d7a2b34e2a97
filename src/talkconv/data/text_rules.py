"""The rules between raw text and the subwords that a vocabulary knows, for one language."""

from collections.abc import Mapping, Sequence
from typing import Any

from talkconv.data.bpe import Pair
from talkconv.data.moses import Moses, lowercased
from talkconv.data.segmentation import Segmenter, is_segmented, undo_marks
from talkconv.data.vocabulary import split_at_spaces

# The settings of a recipe that the rules depend on.
RULE_SETTINGS = ("lowercase", "normalize", "split_hyphens", "protected")

_WORD = "word"


class SpaceRules:
    """Split text at spaces, because it is tokenized already. It may be segmented, too.

    >>> rules = SpaceRules(lowercase=True)
    >>> rules.subwords("A play@@ house .")
    'a play@@ house .'
    >>> rules.words("A play@@ house .")
    'a playhouse .'
    """

    def __init__(self, *, lowercase: bool = False, segmenter: Segmenter | None = None) -> None:
        self.lowercase = lowercase
        self.segmenter = segmenter

    def subwords(self, text: str) -> str:
        """Return a text in the form of the vocabulary: words between spaces, segmented or not."""
        words = self._split(text)
        if self.segmenter is None or is_segmented(words):
            return words
        return self.segmenter.segment(words)

    def joined(self, subwords: str) -> str:
        """Return the words of a result of subwords(), between single spaces."""
        return undo_marks(subwords)

    def text(self, subwords: str) -> str:
        """Return the raw text of a result of subwords()."""
        return undo_marks(subwords)

    def words(self, text: str) -> str:
        """Return the words of a raw text. Tokenized BLEU is computed on them."""
        return self.joined(self._split(text))

    def reference(self, text: str) -> str:
        """Return a raw text in the form of text(), so that outputs can be compared with it."""
        return undo_marks(text)

    def plain(self, text: str) -> str:
        """Return the result that text(subwords(text)) should have if the rules lose nothing."""
        return undo_marks(lowercased(text) if self.lowercase else text)

    def _split(self, text: str) -> str:
        return split_at_spaces(lowercased(text) if self.lowercase else text)


class MosesRules:
    """Tokenize text with Moses, and turn words back into text with Moses' detokenizer.

    >>> MosesRules(Moses("en")).words("Don't stop.")
    'Don &apos;t stop .'
    """

    def __init__(self, moses: Moses, *, segmenter: Segmenter | None = None) -> None:
        self.moses = moses
        self.segmenter = segmenter

    def subwords(self, text: str) -> str:
        words = self.words(text)
        return words if self.segmenter is None else self.segmenter.segment(words)

    def joined(self, subwords: str) -> str:
        return subwords if self.segmenter is None else undo_marks(subwords)

    def text(self, subwords: str) -> str:
        return self.moses.detokenize(self.joined(subwords))

    def words(self, text: str) -> str:
        return self.moses.tokenize(text)

    def reference(self, text: str) -> str:
        return text

    def plain(self, text: str) -> str:
        return self.moses.cleaned(text)


class RawRules:
    """Leave text as it is, because the vocabulary reads raw text and writes it.

    Its words, on which tokenized BLEU is computed, are those of Moses.
    """

    def __init__(self, moses: Moses) -> None:
        self.moses = moses

    def subwords(self, text: str) -> str:
        return lowercased(text) if self.moses.lowercase else text

    def joined(self, subwords: str) -> str:
        return self.moses.tokenize(subwords)

    def text(self, subwords: str) -> str:
        return subwords

    def words(self, text: str) -> str:
        return self.moses.tokenize(text)

    def reference(self, text: str) -> str:
        return text

    def plain(self, text: str) -> str:
        return self.subwords(text)


def continued(rules: "TextRules", subwords: str) -> str:
    """Return the raw text that continues another text, with the space between the two, if any.

    >>> continued(MosesRules(Moses("en")), "the ball .")
    ' the ball.'
    >>> continued(MosesRules(Moses("en")), ", and ran")
    ', and ran'
    """
    if isinstance(rules, RawRules) or not subwords:
        return rules.text(subwords)
    # Put a word before the text, and see whether a space follows it.
    return rules.text(f"{_WORD} {subwords}").removeprefix(_WORD)


TextRules = SpaceRules | MosesRules | RawRules


def make_rules(
    tokenizer: str, lang: str, settings: Mapping[str, Any], codes: Sequence[Pair] | None = None
) -> TextRules:
    """Make the rules of a recipe's tokenizer; `settings` has the values of RULE_SETTINGS.

    A setting that is missing, because an older version did not know it, has its default.
    """
    segmenter = None if codes is None else Segmenter(codes)
    known = {name: settings[name] for name in RULE_SETTINGS if name in settings}
    if tokenizer == "none":
        return SpaceRules(lowercase=bool(known.get("lowercase")), segmenter=segmenter)
    moses = Moses(lang, **known)
    return MosesRules(moses, segmenter=segmenter) if tokenizer == "moses" else RawRules(moses)


def saved_rules(config: Mapping[str, Any]) -> dict[str, TextRules]:
    """Make the rules of each language from the tokenizer_config.json of a TaLKConvTokenizer."""
    # Folders of older versions have the key `moses` instead.
    name = config.get("text_tokenizer") or ("moses" if config["moses"] else "none")
    codes = config.get("codes")
    merges = None if codes is None else [_pair(line) for line in codes]
    languages = (str(config["source_lang"]), str(config["target_lang"]))
    return {lang: make_rules(name, lang, config, merges) for lang in languages}


def _pair(line: str) -> Pair:
    first, second = line.split(" ")
    return first, second
