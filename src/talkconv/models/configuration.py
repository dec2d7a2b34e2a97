"""TaLKConvConfig: the settings of a network, and the only home of their defaults."""

import difflib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, ClassVar

from transformers import PreTrainedConfig

from talkconv.layers.blocks import ACTIVATIONS
from talkconv.layers.make_mixer import MIXERS

_PROBABILITIES = (
    "dropout",
    "attention_dropout",
    "ff_dropout",
    "input_dropout",
    "offset_dropout",
    "weight_dropout",
    "adaptive_dropout",
    "label_smoothing",
)


class TaLKConvConfig(PreTrainedConfig):
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

    vocab_size: int = 10_000
    # the source's own vocabulary; None: the same as vocab_size
    encoder_vocab_size: int | None = None
    dim: int = 512
    ff_dim: int = 2048
    heads: int = 8
    # heads of the attention over the encoder; None: as many as the mixer has
    attention_heads: int | None = None

    encoder_l_max: Sequence[int] = (3, 7, 15, 31, 31, 31, 31)
    # None: the same as encoder_l_max
    encoder_r_max: Sequence[int] | None = None
    decoder_l_max: Sequence[int] = (3, 7, 15, 31, 31, 31)
    encoder_mixer: str | Sequence[str] = "talk"
    decoder_mixer: str | Sequence[str] = "talk"
    # False is the first row of the paper's ablation
    normalize: bool = True
    gate: bool = True
    activation: str = "swish"
    norm_first: bool = False
    # a layer norm after the last layer of each stack
    final_norm: bool = False

    dropout: float = 0.1
    attention_dropout: float = 0.0
    ff_dropout: float = 0.0
    input_dropout: float = 0.0
    offset_dropout: float = 0.0
    # on the kernels of light and dynamic convolutions
    weight_dropout: float = 0.0

    # one table for the encoder's input, the decoder's input and its output
    share_embeddings: bool = False
    # one table for the decoder's input and its output
    tie_word_embeddings: bool = True
    # where the bands of an adaptive input and softmax begin, [] for ordinary embeddings
    adaptive_cutoffs: Sequence[int] = ()
    adaptive_factor: int = 4
    # on the reduced hidden states of the adaptive softmax
    adaptive_dropout: float = 0.0

    label_smoothing: float = 0.0
    use_cache: bool = True
    bos_token_id: int | None = 0
    pad_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    # as the authors' toolkit does, a translation starts with the end of the one before
    decoder_start_token_id: int | None = 2

    def __post_init__(self, **kwargs: Any) -> None:
        self.encoder_l_max = list(self.encoder_l_max)
        self.decoder_l_max = list(self.decoder_l_max)
        same = self.encoder_l_max if self.encoder_r_max is None else self.encoder_r_max
        self.encoder_r_max = list(same)
        self.adaptive_cutoffs = list(self.adaptive_cutoffs)
        self.encoder_mixer = _one_a_layer("encoder_mixer", self.encoder_mixer, self.encoder_l_max)
        self.decoder_mixer = _one_a_layer("decoder_mixer", self.decoder_mixer, self.decoder_l_max)
        if self.attention_heads is None:
            self.attention_heads = self.heads
        if self.share_embeddings:
            self.tie_word_embeddings = True
        self.is_encoder_decoder = len(self.encoder_l_max) > 0
        _check_spelling(kwargs, [field.name for field in fields(self)])
        super().__post_init__(**kwargs)
        self._check_sizes()
        self._check_layers()
        self._check_embeddings()

    @property
    def num_layers(self) -> int:
        """Layers of the decoder."""
        return len(self.decoder_l_max)

    @property
    def source_vocab_size(self) -> int:
        return self.vocab_size if self.encoder_vocab_size is None else self.encoder_vocab_size

    def _check_sizes(self) -> None:
        for name in ("vocab_size", "source_vocab_size", "dim", "ff_dim", "heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("heads", "attention_heads"):
            if self.dim % getattr(self, name):
                raise ValueError(f"{name} must divide dim={self.dim}, got {getattr(self, name)}")
        for name in _PROBABILITIES:
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1), got {getattr(self, name)}")

    def _check_layers(self) -> None:
        assert self.encoder_r_max is not None
        if not self.decoder_l_max:
            raise ValueError("decoder_l_max must have one entry a layer, got an empty list")
        if len(self.encoder_r_max) != len(self.encoder_l_max):
            raise ValueError(
                "encoder_l_max and encoder_r_max must have one entry a layer each, "
                f"got {len(self.encoder_l_max)} and {len(self.encoder_r_max)} entries"
            )
        for name in ("encoder_l_max", "encoder_r_max", "decoder_l_max"):
            if any(reach < 0 for reach in getattr(self, name)):
                raise ValueError(f"{name} must be at least 0 everywhere, got {getattr(self, name)}")
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation must be one of {list(ACTIVATIONS)}, got {self.activation!r}"
            )

    def _check_embeddings(self) -> None:
        if self.share_embeddings and self.source_vocab_size != self.vocab_size:
            raise ValueError(
                "share_embeddings needs one vocabulary for both sides, "
                f"got encoder_vocab_size={self.encoder_vocab_size}, vocab_size={self.vocab_size}"
            )
        if not self.adaptive_cutoffs:
            return
        ends = [0, *self.adaptive_cutoffs, self.vocab_size]
        if any(begin >= end for begin, end in itertools.pairwise(ends)):
            raise ValueError(
                "adaptive_cutoffs must rise from above 0 to below "
                f"vocab_size={self.vocab_size}, got {self.adaptive_cutoffs}"
            )
        if self.is_encoder_decoder:
            raise ValueError(
                "adaptive_cutoffs are for language models: make encoder_l_max empty, "
                f"got {len(self.encoder_l_max)} encoder layers"
            )
        if self.label_smoothing:
            raise ValueError(
                "label_smoothing is not defined for an adaptive softmax, "
                f"got {self.label_smoothing} with adaptive_cutoffs={self.adaptive_cutoffs}"
            )


def _one_a_layer(name: str, mixer: str | Sequence[str], layers: Sequence[int]) -> str | list[str]:
    words = [mixer] if isinstance(mixer, str) else list(mixer)
    unknown = [word for word in words if word not in MIXERS]
    if unknown:
        raise ValueError(f"{name} must be of {MIXERS}, got {unknown[0]!r}")
    if isinstance(mixer, str):
        return mixer
    if len(words) != len(layers):
        raise ValueError(
            f"{name} must be one word or have one entry for each of the {len(layers)} layers, "
            f"got {len(words)} entries"
        )
    return words


def _check_spelling(unknown: Iterable[str], known: list[str]) -> None:
    """transformers keeps whatever key it does not know; one that looks like ours is a mistake."""
    for name in unknown:
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if nearest:
            raise ValueError(f"no setting is called {name!r}: did you mean {nearest[0]!r}?")
