"""TaLKConvTokenizer: turns raw text into ids and ids into raw text, by words and subwords."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy
from tokenizers import Tokenizer
from transformers import BatchEncoding, PreTrainedTokenizerFast

from talkconv.data.bpe import Pair
from talkconv.data.data_settings import DataSettings
from talkconv.data.specials import BOS, EOS, PAD, UNK
from talkconv.data.text_rules import RULE_SETTINGS, TextRules, continued, saved_rules
from talkconv.data.vocabulary import frame_texts
from talkconv.files import write_text

Ids = Sequence[int]
# AutoTokenizer reads this file of a saved tokenizer if talkconv was not imported and the caller
# trusts the folder. Without the file and `auto_map`, it would load the vocabulary without the
# rules, which gives wrong ids and no error.
_SHIM = "tokenization_talkconv"
_SHIM_TEXT = '''"""AutoTokenizer finds this folder's tokenizer here; talkconv must be installed."""

from talkconv.data.tokenizer import TaLKConvTokenizer as _TaLKConvTokenizer


class TaLKConvTokenizer(_TaLKConvTokenizer):
    """The tokenizer of talkconv, under the name that `auto_map` in tokenizer_config.json has."""
'''


class TaLKConvTokenizer(PreTrainedTokenizerFast):
    """A transformers tokenizer that applies the rules of a recipe around its vocabulary.

    `tokenizer(text)` reads the source's language, `tokenizer(text_target=text)` the target's, and
    `decode` writes the target's. The ids of a text end with </s>. For a language model they begin
    with it instead, because in its training data each line begins after the </s> of the line
    before. Ids without </s> continue a line, and decode() writes a space before them if needed.

    >>> tokenizer = load_tokenizer("data/multi30k_de_en/tokenizer")  # doctest: +SKIP
    >>> ids = tokenizer("Ein Mann schläft.")["input_ids"]  # ends with </s>  # doctest: +SKIP
    """

    # There is no __init__: transformers would rebuild the backend of a class that has one, instead
    # of reading it from tokenizer.json. make_tokenizer() passes the rules as keyword arguments,
    # which transformers saves and loads.
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    @property
    def text_tokenizer(self) -> str:
        """The name of the rules: a value of data.tokenizer in a recipe."""
        name = self.init_kwargs.get("text_tokenizer")
        # Folders of older versions have the key `moses` instead.
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

    def decode_tokenized(self, ids: Ids) -> str:
        """Return the words of ids in the form of tokenized_text(), without special ids."""
        subwords = str(self.backend_tokenizer.decode(list(ids), skip_special_tokens=True))
        return self._rules[self.target_lang].joined(subwords)

    @cached_property
    def _rules(self) -> dict[str, TextRules]:
        return saved_rules(self.init_kwargs)

    def __call__(
        self,
        text: Any = None,
        text_pair: Any = None,
        text_target: Any = None,
        text_pair_target: Any = None,
        **kwargs: Any,
    ) -> BatchEncoding:
        """Return the ids of one raw text or a list of texts. Those of `text_target` are labels."""
        _refuse_pairs(text_pair, text_pair_target, kwargs)
        if _is_empty(text) or _is_empty(text_target):
            return self._nothing(text, text_target, kwargs.get("return_tensors"))
        encoding: BatchEncoding = super().__call__(
            self._subwords(text, self.source_lang),
            text_target=self._subwords(text_target, self.target_lang),
            **kwargs,
        )
        return encoding

    def encode(self, text: Any, text_pair: Any = None, **kwargs: Any) -> list[int]:
        """Return the ids of a raw text of the source's language."""
        _refuse_pairs(text_pair, None, kwargs)
        ids: list[int] = super().encode(self._subwords(text, self.source_lang), **kwargs)
        return ids

    def tokenize(self, text: str, pair: Any = None, **kwargs: Any) -> list[str]:  # type: ignore[override]
        """Return the subwords of a raw text of the source's language."""
        _refuse_pairs(pair, None, kwargs)
        return list(super().tokenize(self._subwords(text, self.source_lang), **kwargs))

    def decode(
        self, token_ids: Any, skip_special_tokens: bool = False, **kwargs: Any
    ) -> str | list[str]:
        """Return the raw text of ids in the target's language, or a list for a list of rows."""
        found = super().decode(token_ids, skip_special_tokens=skip_special_tokens, **kwargs)
        if isinstance(found, str):
            return self._text(found, token_ids)
        return [self._text(each, row) for each, row in zip(found, token_ids, strict=True)]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Return the raw text of subwords in the target's language."""
        return self._rules[self.target_lang].text(super().convert_tokens_to_string(tokens))

    def save_pretrained(  # type: ignore[override]
        self, save_directory: str | os.PathLike[str], *, push_to_hub: bool = False, **kwargs: Any
    ) -> tuple[str, ...]:
        """Write the tokenizer to a folder, with the file by which AutoTokenizer finds its class."""
        files = super().save_pretrained(save_directory, **kwargs)
        shim = Path(save_directory) / f"{_SHIM}.py"
        write_text(shim, _SHIM_TEXT)
        if push_to_hub:
            # This writes all files to a folder of its own and uploads them.
            self.push_to_hub(kwargs.pop("repo_id", Path(save_directory).name), **kwargs)
        return (*files, str(shim))

    def _text(self, subwords: str, ids: Any) -> str:
        rules = self._rules[self.target_lang]
        if not self.init_kwargs.get("open_ended"):
            return rules.text(subwords)
        row = numpy.asarray(ids).reshape(-1)
        first = next((each for each in row if each != self.pad_token_id), self.eos_token_id)
        return rules.text(subwords) if first == self.eos_token_id else continued(rules, subwords)

    def _subwords(self, text: Any, lang: str) -> Any:
        rules = self._rules[lang]
        if text is None or isinstance(text, str):
            return text if text is None else rules.subwords(text)
        return [rules.subwords(each) for each in text]

    def _nothing(self, text: Any, text_target: Any, return_tensors: Any) -> BatchEncoding:
        """Return the encoding of a list of no texts."""
        if not all(each is None or _is_empty(each) for each in (text, text_target)):
            raise ValueError("text and text_target must have equally many texts, got an empty list")
        names = [] if text is None and text_target is None else [*self.model_input_names]
        if text is not None and text_target is not None:
            names.append("labels")
        empty: Any = [] if return_tensors is None else numpy.zeros((0, 0), numpy.int64)
        return BatchEncoding(dict.fromkeys(names, empty), tensor_type=return_tensors)


def _refuse_pairs(pair: Any, pair_target: Any, kwargs: dict[str, Any]) -> None:
    if pair is not None or pair_target is not None or kwargs.get("is_split_into_words"):
        raise ValueError("text must be one raw text or a list of them, not pairs or words")


def _is_empty(texts: Any) -> bool:
    return not isinstance(texts, str) and texts is not None and len(texts) == 0


def make_tokenizer(
    backend: Tokenizer,
    settings: DataSettings,
    codes: Sequence[Pair] | None = None,
    *,
    open_ended: bool = False,
) -> TaLKConvTokenizer:
    """Make a tokenizer that applies the recipe's rules around `backend`.

    `codes` are the merges of the file settings.codes. An `open_ended` tokenizer, for a language
    model, puts </s> before a text instead of after it, so that the network goes on with the text.
    """
    frame_texts(backend, open_ended=open_ended)
    return TaLKConvTokenizer(
        tokenizer_object=backend,
        text_tokenizer=settings.tokenizer,
        source_lang=settings.source_lang,
        target_lang=settings.target_lang,
        **{rule: settings.as_dict()[rule] for rule in RULE_SETTINGS},
        open_ended=open_ended,
        codes=None if codes is None else [" ".join(pair) for pair in codes],
        auto_map={"AutoTokenizer": [None, f"{_SHIM}.TaLKConvTokenizer"]},
        bos_token=BOS,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNK,
        # The name of a special entry within a text is text.
        split_special_tokens=True,
        # That clean-up is for English word pieces, and would change the output of our rules.
        clean_up_tokenization_spaces=False,
    )


def load_tokenizer(folder: Path | str) -> TaLKConvTokenizer:
    """Load the tokenizer of a prepared folder (its `tokenizer/`) or of a model's folder."""
    folder = Path(folder)
    if not (folder / "tokenizer.json").is_file():
        raise ValueError(f"{folder} must be a folder with tokenizer.json, and has none")
    tokenizer: TaLKConvTokenizer = TaLKConvTokenizer.from_pretrained(folder)
    return tokenizer
