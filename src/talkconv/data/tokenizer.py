"""TaLKConvTokenizer: raw text in, raw text out, Moses and subwords between them."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoTokenizer, BatchEncoding, PreTrainedConfig, PreTrainedTokenizerFast

from talkconv.data.bpe import Pair
from talkconv.data.settings import DataSettings
from talkconv.data.text_rules import LOWERCASE, MOSES_SETTINGS, TextRules, make_rules
from talkconv.data.vocabulary import BOS, EOS, PAD, UNK

Ids = Sequence[int]


class TaLKConvTokenizer(PreTrainedTokenizerFast):
    """A transformers tokenizer around the rules of a recipe: Moses, or text split at spaces.

    `tokenizer(text)` reads the source's language, `tokenizer(text_target=text)` the target's, and
    `decode` writes the target's.

    >>> tokenizer = load_tokenizer("data/multi30k_de_en/tokenizer")  # doctest: +SKIP
    >>> ids = tokenizer("Ein Mann schläft.")["input_ids"]  # ends with </s>  # doctest: +SKIP
    """

    # no __init__: a class that has one gets its backend rebuilt by transformers, not read from
    # tokenizer.json. The rules are what make_tokenizer() passed, which transformers saves and loads
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012
    _target_mode = False

    @property
    def text_tokenizer(self) -> str:
        """The name of the rules, as data.tokenizer of a recipe has it."""
        name = self.init_kwargs.get("text_tokenizer")
        # folders of version 0.1 say `moses` instead
        return str(name or ("moses" if self.init_kwargs["moses"] else "none"))

    @property
    def source_lang(self) -> str:
        return str(self.init_kwargs["source_lang"])

    @property
    def target_lang(self) -> str:
        return str(self.init_kwargs["target_lang"])

    def tokenized_text(self, text: str, lang: str | None = None) -> str:
        """Return the words of a text, in the target's language unless `lang` names another.

        Tokenized BLEU is computed on them: subwords are joined, Moses' escapes are kept.
        """
        return self._rules[lang or self.target_lang].words(text)

    def detokenized_text(self, words: str, lang: str | None = None) -> str:
        """Return the raw text of words that tokenized_text() gave."""
        return self._rules[lang or self.target_lang].text(words)

    def decode_tokenized(self, ids: Ids) -> str:
        """Return the words of ids, as tokenized_text() gives them, without special ids."""
        subwords = str(self.backend_tokenizer.decode(list(ids), skip_special_tokens=True))
        return self._rules[self.target_lang].join(subwords)

    @cached_property
    def _rules(self) -> dict[str, TextRules]:
        codes = self.init_kwargs.get("codes")
        merges = None if codes is None else [_pair(line) for line in codes]
        return {
            lang: make_rules(self.text_tokenizer, lang, self.init_kwargs, merges)
            for lang in (self.source_lang, self.target_lang)
        }

    # transformers calls these two around text_target
    def _switch_to_input_mode(self) -> None:
        self._target_mode = False

    def _switch_to_target_mode(self) -> None:
        self._target_mode = True

    def _encode_plus(  # type: ignore[override]
        self, text: Any, text_pair: Any = None, **kwargs: Any
    ) -> BatchEncoding:
        if text_pair is not None or kwargs.get("is_split_into_words"):
            raise ValueError("text must be one raw text or a list of them, not pairs or words")
        lang = self.target_lang if self._target_mode else self.source_lang
        if isinstance(text, str):
            words: Any = self._rules[lang].subwords(text)
        else:
            words = [self._rules[lang].subwords(one) for one in text]
        return super()._encode_plus(words, **kwargs)

    def _decode(  # type: ignore[override]
        self, token_ids: Any, skip_special_tokens: bool = False, **kwargs: Any
    ) -> str:
        subwords = super()._decode(token_ids, skip_special_tokens=skip_special_tokens)
        return self.detokenized_text(self._rules[self.target_lang].join(subwords))

    def tokenize(self, text: str, *args: Any, **kwargs: Any) -> list[str]:
        """The subwords of a raw text of the source's language."""
        return list(
            self.backend_tokenizer.encode(
                self._rules[self.source_lang].subwords(text), add_special_tokens=False
            ).tokens
        )


class _AnyConfig(PreTrainedConfig):
    """AutoTokenizer learns of a class together with a config; it finds ours by the class's name."""

    model_type = "talkconv-tokenizer"


AutoTokenizer.register(_AnyConfig, tokenizer_class=TaLKConvTokenizer, exist_ok=True)


def _pair(line: str) -> Pair:
    first, second = line.split(" ")
    return first, second


def make_tokenizer(
    backend: Tokenizer, settings: DataSettings, codes: Sequence[Pair] | None = None
) -> TaLKConvTokenizer:
    """Make a tokenizer that applies the recipe's rules around `backend`, which splits words.

    `codes` are the merges of the file settings.codes.
    """
    return TaLKConvTokenizer(
        tokenizer_object=backend,
        text_tokenizer=settings.tokenizer,
        source_lang=settings.source_lang,
        target_lang=settings.target_lang,
        **{rule: getattr(settings, rule) for rule in (LOWERCASE, *MOSES_SETTINGS)},
        codes=None if codes is None else [" ".join(pair) for pair in codes],
        bos_token=BOS,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNK,
        # a name of a special word within a text is text
        split_special_tokens=True,
        # made for English word pieces: here Moses undoes what Moses did
        clean_up_tokenization_spaces=False,
    )


def load_tokenizer(folder: Path | str) -> TaLKConvTokenizer:
    """The tokenizer of a prepared folder (its `tokenizer/`) or of a model folder."""
    folder = Path(folder)
    if not (folder / "tokenizer.json").is_file():
        raise ValueError(f"{folder} must be a folder with tokenizer.json, and has none")
    tokenizer: TaLKConvTokenizer = TaLKConvTokenizer.from_pretrained(folder)
    return tokenizer
