"""preset(): the configuration of every network of the paper by name."""

from typing import Any

from talkconv.models.configuration import TaLKConvConfig
from talkconv.network_presets import preset_settings


def preset(name: str, **changes: Any) -> TaLKConvConfig:
    """Return the configuration of one of the paper's networks, with `changes` of your own.

    Pass vocab_size=len(tokenizer) for your own text.

    >>> preset("iwslt14_de_en", vocab_size=8_000).encoder_l_max
    [1, 3, 7, 15, 15, 15, 15]
    """
    return TaLKConvConfig(**{**preset_settings(name), **changes})
