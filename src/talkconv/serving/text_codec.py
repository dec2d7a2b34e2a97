"""Turns raw text into token ids and back, without transformers: Moses, subwords, special tokens."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from talkconv.data.text_rules import TextRules, continued, saved_rules


class TextCodec:
    """Reads the files of a tokenizer that transformers saved, and does what that tokenizer does.

    >>> codec = TextCodec(Path("exported/tokenizer"))  # doctest: +SKIP
    >>> codec.decode(codec.encode("Ein Mann schläft."))  # doctest: +SKIP
    'Ein Mann schläft.'
    """

    def __init__(self, folder: Path) -> None:
        config = _read_config(folder)
        # the settings of the tokenizer, under the name that transformers gives them
        self.init_kwargs = config
        self.backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
        # if the tokenizer says so, the name of a special word within a text is ordinary text
        self.backend.encode_special_tokens = bool(config.get("split_special_tokens"))
        self._rules = _rules_of(config)
        self._eos, self._pad = (str(config[name]) for name in ("eos_token", "pad_token"))
        # In a language model, ids that do not begin with </s> continue a text.
        self._is_open_ended = bool(config.get("open_ended"))

    def __call__(self, text: str) -> dict[str, list[int]]:
        """Return the ids of a raw text of the source's language, as a tokenizer does."""
        return {"input_ids": self.encode(text)}

    @property
    def eos_token_id(self) -> int:
        """The token that ends every text."""
        token = self.backend.token_to_id(self._eos)
        assert token is not None, "the end of a text is in every vocabulary"
        return int(token)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a raw text of the source's language, special ids included."""
        ids: list[int] = self.backend.encode(self._rules[0].subwords(text)).ids
        return ids

    def encode_target(self, text: str) -> list[int]:
        """Return the ids of a raw text of the target's language, special ids included."""
        ids: list[int] = self.backend.encode(self._rules[1].subwords(text)).ids
        return ids

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Return the raw text of ids of the target's language."""
        subwords = self.backend.decode(list(token_ids), skip_special_tokens=skip_special_tokens)
        rules = self._rules[1]
        if isinstance(rules, _NoRules) or not self._continues(token_ids):
            return rules.text(str(subwords))
        return continued(rules, str(subwords))

    def decode_tokenized(self, ids: Sequence[int]) -> str:
        """Return the words of ids, as tokenized_text() gives them, without special ids."""
        return self._rules[1].joined(str(self.backend.decode(list(ids), skip_special_tokens=True)))

    def tokenized_text(self, text: str) -> str:
        """Return the words of a raw text of the target's language: BLEU is computed on them."""
        return self._rules[1].words(text)

    def _continues(self, ids: Sequence[int]) -> bool:
        """Return whether ids continue a text, so that a space may be needed before them."""
        pad = self.backend.token_to_id(self._pad)
        first = next((token for token in ids if token != pad), self.eos_token_id)
        return self._is_open_ended and first != self.eos_token_id

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the entries of the vocabulary that ids stand for."""
        return [str(self.backend.id_to_token(token)) for token in ids]

    def __len__(self) -> int:
        return int(self.backend.get_vocab_size())


class _NoRules:
    """Leaves all text to the backend, as transformers does with tokenizers of its own."""

    def subwords(self, text: str) -> str:
        return text

    def joined(self, subwords: str) -> str:
        return subwords

    def text(self, subwords: str) -> str:
        return subwords

    def words(self, text: str) -> str:
        return text


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads(
            (folder / "tokenizer_config.json").read_text(encoding="utf-8")
        )
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder} must hold a tokenizer: {error}") from error
    if not (folder / "tokenizer.json").is_file():
        raise ValueError(f"{folder} must hold a tokenizer, but has no tokenizer.json")
    return config


def _rules_of(config: dict[str, Any]) -> tuple[TextRules | _NoRules, TextRules | _NoRules]:
    """Return the rules of the source's language and of the target's."""
    if config.get("tokenizer_class") != "TaLKConvTokenizer":
        return _NoRules(), _NoRules()
    rules = saved_rules(config)
    return rules[config["source_lang"]], rules[config["target_lang"]]
