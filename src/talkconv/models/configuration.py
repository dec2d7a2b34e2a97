"""TaLKConvConfig: the settings of a network as a configuration of transformers."""

import copy
import difflib
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, ClassVar

from transformers import PreTrainedConfig

from talkconv.network_settings import DEFAULT_MIXER, NetworkSettings

POOLINGS = ("mean", "max")


class TaLKConvConfig(NetworkSettings, PreTrainedConfig):
    """A network of TaLK convolutions, or of one of the mixers that the paper compares them with.

    A list has one entry for each layer, and so says how many layers there are. A network without
    encoder layers is a language model; one without decoder layers is an encoder alone, for example
    of a classifier. A mixer is one word for all layers or a list of words.

    >>> config = TaLKConvConfig(vocab_size=100, encoder_l_max=[], decoder_l_max=[3, 7])
    >>> config.is_encoder_decoder, config.num_layers
    (False, 2)
    """

    model_type: ClassVar[str] = "talkconv"
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["past_key_values"]
    attribute_map: ClassVar[dict[str, str]] = {
        "hidden_size": "dim",
        "num_attention_heads": "heads",
        "num_hidden_layers": "num_layers",
    }

    use_cache: bool = True
    bos_token_id: int | None = 0
    pad_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    # a translation starts with the end of the one before, as in the authors' toolkit
    decoder_start_token_id: int | None = 2
    # how a classifier of whole texts pools the states of all tokens: "mean" or "max"
    pooling: str = "mean"
    # the dropout on the states that a classifier reads; None means the value of `dropout`
    classifier_dropout: float | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        self.fill_in()
        self.is_encoder_decoder = self.has_encoder and self.has_decoder
        _check_spelling(kwargs, [field.name for field in fields(self)])
        # NetworkSettings has a __post_init__ too; its two parts are called before and after this
        PreTrainedConfig.__post_init__(self, **kwargs)
        self.check()
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {POOLINGS}, got {self.pooling!r}")

    def encoder_alone(self) -> "TaLKConvConfig":
        """Return a copy without the decoder, whose encoder has its own table of embeddings."""
        config = copy.deepcopy(self)
        config.decoder_l_max, config.decoder_mixer = [], DEFAULT_MIXER
        config.vocab_size, config.encoder_vocab_size = self.source_vocab_size, None
        config.share_embeddings = config.is_encoder_decoder = False
        return config


def _check_spelling(unknown: Iterable[str], known: list[str]) -> None:
    """Raise a ValueError for an unknown key that looks like a known one.

    transformers keeps every key that it does not know, so that a misspelt one would have no effect.
    """
    for name in unknown:
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if nearest:
            raise ValueError(f"no setting is called {name!r}: did you mean {nearest[0]!r}?")
