"""DataSettings: the [data] section of a recipe, and the only home of its defaults."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from talkconv.data.protected import Protected
from talkconv.data.specials import SMALLEST_RAW
from talkconv.messages import did_you_mean

CORPORA = (
    "iwslt14",
    "wmt16_en_de",
    "wmt14_en_fr",
    "cnn_dailymail",
    "wikitext",
    "pairs",
    "summaries",
    "text",
    "toy",
)
HUB = "datasets:"
# These tokenizers read raw text and write it, and keep every byte of it.
RAW_TOKENIZERS = ("bytes", "unigram")
TOKENIZERS = ("moses", "none", *RAW_TOKENIZERS)
AUTO = "auto"


@dataclass(frozen=True)
class DataSettings:
    """Settings that say how raw text becomes token ids.

    >>> DataSettings(corpus="pairs", source_lang="de", target_lang="en", vocabulary=8_000).lowercase
    False
    """

    # The layout of the raw files, or "datasets:NAME" for the `datasets` library.
    corpus: str
    # Two-letter codes select the Moses rules. A language model and a summary have one language.
    source_lang: str = "en"
    target_lang: str = "en"
    # How text becomes subwords. "moses" splits it into words, of which BPE is learnt. "none" splits
    # it at spaces, because others tokenized it, and undoes the marks `@@ ` of their subwords in
    # every output. "bytes" (BPE over bytes) and "unigram" (a unigram language model over bytes)
    # read raw text and write it, and keep every byte. "auto" is "moses" where `vocabulary` is set
    # and "none" where it is not.
    tokenizer: str = AUTO
    # Regular expressions of what Moses must keep whole, such as "%[a-z]" or "</?[a-z]+>".
    protected: Sequence[str] = ()
    lowercase: bool = False
    # Moses' normalize-punctuation is applied before tokenization.
    normalize: bool = False
    # Hyphens are split as by Moses' -a: well-known becomes well @-@ known.
    split_hyphens: bool = False
    # The size of the finished vocabulary of subwords, special entries included. None is word level:
    # each word (or each subword, where words come in marked subwords) is one entry.
    vocabulary: int | None = None
    # A codes file of subword-nmt, in the folder of the raw files or anywhere: words are segmented
    # with it. A line that carries marks already stays as it is.
    codes: str | None = None
    # Rarer words (at word level) and rarer characters (with BPE) become <unk>.
    min_frequency: int = 1
    # Training pairs are dropped if a side is longer than max_length, unless it is cut (see below),
    # and if one side is more than max_ratio times as long as the other.
    max_length: int | None = 1_000
    max_ratio: float | None = None
    # Both settings count "words" or "subwords".
    length_in: str = "words"
    # Sources (articles) and targets are cut after so many tokens.
    max_source_tokens: int | None = None
    max_target_tokens: int | None = None
    # The number of tokens in a row of a language model's data.
    block: int = 512
    # The number of training pairs of the built-in corpus.
    toy_pairs: int = 20_000

    def __post_init__(self) -> None:
        if self.corpus not in CORPORA and not self.corpus.startswith(HUB):
            hint = did_you_mean(self.corpus, CORPORA)
            raise ValueError(
                f"corpus must be {HUB}NAME or a known one, got {self.corpus!r}: {hint}"
            )
        self._check_tokenizer()
        if self.length_in not in ("words", "subwords"):
            raise ValueError(f"length_in must be 'words' or 'subwords', got {self.length_in!r}")
        if self.length_in == "subwords" and self.vocabulary is None:
            raise ValueError("length_in = 'subwords' needs a vocabulary of subwords, got None")
        if self.max_ratio is not None and self.max_ratio < 1:
            raise ValueError(f"max_ratio must be at least 1, got {self.max_ratio}")
        positive = ("vocabulary", "min_frequency", "max_length", "block", "toy_pairs")
        for name in (*positive, "max_source_tokens", "max_target_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be positive, got {value}")

    def _check_tokenizer(self) -> None:
        if self.tokenizer == AUTO:
            resolved = "none" if self.vocabulary is None else "moses"
            object.__setattr__(self, "tokenizer", resolved)
        if self.tokenizer not in TOKENIZERS:
            hint = did_you_mean(self.tokenizer, TOKENIZERS)
            raise ValueError(f"tokenizer must be a known one, got {self.tokenizer!r}: {hint}")
        object.__setattr__(self, "protected", tuple(self.protected))
        Protected(self.protected)
        for name in ("normalize", "split_hyphens", "protected"):
            if getattr(self, name) and self.tokenizer != "moses":
                raise ValueError(f"{name} needs tokenizer = 'moses', got {self.tokenizer!r}")
        if self.codes is not None and self.vocabulary is not None:
            raise ValueError(
                f"codes = {self.codes!r} says what the subwords are, and so does vocabulary = "
                f"{self.vocabulary}: leave one of them out"
            )
        if self.tokenizer in RAW_TOKENIZERS:
            self._check_raw_tokenizer()

    def _check_raw_tokenizer(self) -> None:
        if self.vocabulary is None or self.vocabulary < SMALLEST_RAW:
            raise ValueError(
                f"tokenizer = {self.tokenizer!r} needs a vocabulary of at least {SMALLEST_RAW} "
                f"entries, one for each byte among them, got {self.vocabulary}"
            )
        if self.min_frequency > 1:
            raise ValueError(
                f"tokenizer = {self.tokenizer!r} knows every byte, so that nothing is too rare for "
                f"it: leave out min_frequency = {self.min_frequency}"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return all settings as JSON has them."""
        return {**asdict(self), "protected": list(self.protected)}
