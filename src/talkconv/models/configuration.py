"""TaLKConvConfig: the settings of a network as a configuration of transformers."""

import difflib
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, ClassVar

from transformers import PreTrainedConfig

from talkconv.network_settings import NetworkSettings


class TaLKConvConfig(NetworkSettings, PreTrainedConfig):
    """A network of TaLK convolutions, or of one of the mixers that the paper compares them with.

    A list has one entry a layer, and so says how many layers there are. Without encoder layers it
    is a language model. A mixer is one word for all layers or a list of them.

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
    # as the authors' toolkit does, a translation starts with the end of the one before
    decoder_start_token_id: int | None = 2

    def __post_init__(self, **kwargs: Any) -> None:
        self.fill_in()
        self.is_encoder_decoder = self.has_encoder
        _check_spelling(kwargs, [field.name for field in fields(self)])
        # NetworkSettings has the other __post_init__, whose two parts stand around this one
        PreTrainedConfig.__post_init__(self, **kwargs)
        self.check()


def _check_spelling(unknown: Iterable[str], known: list[str]) -> None:
    """transformers keeps whatever key it does not know; one that looks like ours is a mistake."""
    for name in unknown:
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if nearest:
            raise ValueError(f"no setting is called {name!r}: did you mean {nearest[0]!r}?")
