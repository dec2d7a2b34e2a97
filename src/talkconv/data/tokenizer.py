"""TaLKConvTokenizer: raw text in, raw text out, Moses and subwords between them."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoTokenizer, BatchEncoding, PreTrainedConfig, PreTrainedTokenizerFast

from talkconv.data.moses import Moses
from talkconv.data.settings import DataSettings
from talkconv.data.vocabulary import BOS, EOS, PAD, UNK, split_at_spaces

Ids = Sequence[int]
MOSES_RULES = ("lowercase", "normalize", "split_hyphens")


class TaLKConvTokenizer(PreTrainedTokenizerFast):
    """A transformers tokenizer around Moses; at word level (`moses=False`) text is split at spaces.

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
    def moses(self) -> bool:
        return bool(self.init_kwargs["moses"])

    @property
    def source_lang(self) -> str:
        return str(self.init_kwargs["source_lang"])

    @property
    def target_lang(self) -> str:
        return str(self.init_kwargs["target_lang"])

    def tokenized_text(self, text: str, lang: str | None = None) -> str:
        """The words of a text, as Moses splits and escapes them, in the target's language unless
        `lang` names another: what tokenized BLEU is computed on."""
        if not self.moses:
            return split_at_spaces(text)
        return self._moses[lang or self.target_lang].tokenize(text)

    def detokenized_text(self, words: str, lang: str | None = None) -> str:
        """The other way round."""
        return self._moses[lang or self.target_lang].detokenize(words) if self.moses else words

    def decode_tokenized(self, ids: Ids) -> str:
        """Ids to words, as tokenized_text() gives them; special ids are left out."""
        return str(self.backend_tokenizer.decode(list(ids), skip_special_tokens=True))

    @cached_property
    def _moses(self) -> dict[str, Moses]:
        return {
            lang: Moses(lang, **{rule: self.init_kwargs[rule] for rule in MOSES_RULES})
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
            words: Any = self.tokenized_text(text, lang)
        else:
            words = [self.tokenized_text(one, lang) for one in text]
        return super()._encode_plus(words, **kwargs)

    def _decode(  # type: ignore[override]
        self, token_ids: Any, skip_special_tokens: bool = False, **kwargs: Any
    ) -> str:
        words = super()._decode(token_ids, skip_special_tokens=skip_special_tokens)
        return self.detokenized_text(words)

    def tokenize(self, text: str, *args: Any, **kwargs: Any) -> list[str]:
        """The subwords of a raw text of the source's language."""
        return list(
            self.backend_tokenizer.encode(
                self.tokenized_text(text, self.source_lang), add_special_tokens=False
            ).tokens
        )


class _AnyConfig(PreTrainedConfig):
    """AutoTokenizer learns of a class together with a config; it finds ours by the class's name."""

    model_type = "talkconv-tokenizer"


AutoTokenizer.register(_AnyConfig, tokenizer_class=TaLKConvTokenizer, exist_ok=True)


def make_tokenizer(backend: Tokenizer, settings: DataSettings) -> TaLKConvTokenizer:
    """A tokenizer that applies the recipe's rules around `backend`, which splits words."""
    return TaLKConvTokenizer(
        tokenizer_object=backend,
        moses=settings.vocabulary is not None,
        source_lang=settings.source_lang,
        target_lang=settings.target_lang,
        **{rule: getattr(settings, rule) for rule in MOSES_RULES},
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
