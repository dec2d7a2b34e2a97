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

    The comment above each setting is its explanation in docs/settings.md and recipes/toy.toml,
    which `make settings` writes.

    >>> DataSettings(corpus="pairs", source_lang="de", target_lang="en", vocabulary=8_000).lowercase
    False
    """

    # The layout of the raw files: "pairs" (train.de and train.en, or train.tsv with two columns),
    # "summaries" (train.source and train.summary, or train.tsv), "text" (train.txt), the paper's
    # "iwslt14", "wmt16_en_de", "wmt14_en_fr", "cnn_dailymail" and "wikitext", "datasets:NAME" for
    # the `datasets` library, or "toy", which needs no files.
    corpus: str
    # The language of the sources, a code of two letters. It selects the Moses rules, and the files
    # of "pairs" end with it. A language model and a summary have this one language.
    source_lang: str = "en"
    # The language of the targets.
    target_lang: str = "en"
    # How text becomes subwords. "moses" splits it into words, of which BPE is learnt. "none" splits
    # it at spaces, because others tokenized it, and joins their subwords (marked by `@@ `) in every
    # output. "bytes" (BPE over bytes) and "unigram" (a unigram language model over bytes) read raw
    # text and write it, and keep every byte. "auto" is "moses" where `vocabulary` is set and "none"
    # where it is not.
    tokenizer: str = AUTO
    # Regular expressions of strings that Moses must keep whole, such as `%[a-z]` or `</?[a-z]+>`.
    protected: Sequence[str] = ()
    # With true, all text is put into lower case.
    lowercase: bool = False
    # With true, Moses' normalize-punctuation is applied before tokenization.
    normalize: bool = False
    # With true, hyphens are split as by Moses' -a: well-known becomes `well @-@ known`.
    split_hyphens: bool = False
    # The size of the finished vocabulary of subwords, special entries included. With "none", each
    # word (or each subword, where words come in marked subwords) is an entry of the vocabulary.
    vocabulary: int | None = None
    # A codes file of subword-nmt, in the folder of the raw files or anywhere, which segments the
    # words. It takes the place of `vocabulary`. A line that has marks already stays as it is.
    codes: str | None = None
    # Rarer characters (rarer words, where the vocabulary has whole words) become `<unk>`.
    min_frequency: int = 1
    # Training pairs with a longer side are dropped, unless that side is cut (see
    # max_source_tokens). With "none", they are kept.
    max_length: int | None = 1_000
    # Training pairs with one side more than so many times as long as the other are dropped. With
    # "none", they are kept.
    max_ratio: float | None = None
    # The unit in which max_length and max_ratio count: "words" or "subwords".
    length_in: str = "words"
    # Longer sources are cut after so many tokens. With "none", they are not.
    max_source_tokens: int | None = None
    # Longer targets are cut after so many tokens. With "none", they are not.
    max_target_tokens: int | None = None
    # The number of tokens in a row of a language model's data. Other tasks do not use it.
    block: int = 512
    # The number of training pairs of the built-in corpus "toy".
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
        """Return all settings as values that JSON can hold."""
        return {**asdict(self), "protected": list(self.protected)}
