"""NetworkSettings: the settings of a network, and the only home of their defaults.

They need neither torch nor transformers, so that reading and checking a recipe is quick.
`talkconv.models.TaLKConvConfig` is made of them, and the layers take their defaults from here.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

MIXERS = ("talk", "attention", "light", "dynamic")
DEFAULT_MIXER = "talk"
ACTIVATIONS = ("swish", "relu")
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


@dataclass(kw_only=True)
class NetworkSettings:
    """Sizes, windows, mixers and dropouts of a network.

    A list has one entry for each layer, and so says how many layers there are. A network without
    encoder layers is a language model; one without decoder layers is an encoder alone, for example
    of a classifier. A mixer is one word for all layers or a list of words.

    The comment above each setting is its explanation in docs/settings.md and recipes/toy.toml,
    which `make settings` writes.

    >>> NetworkSettings(encoder_l_max=[], decoder_l_max=[3, 7]).num_layers
    2
    """

    # The size of the vocabulary, which a recipe takes from its data.
    vocab_size: int = 10_000
    # The size of the source's own vocabulary. None means that both sides have one vocabulary.
    encoder_vocab_size: int | None = None
    # The channels of each token.
    dim: int = 512
    # The channels between the two layers of the feed-forward part.
    ff_dim: int = 2048
    # The heads of the mixer. They must divide dim.
    heads: int = 8
    # The heads of the attention over the encoder. "none" is as many as the mixer has.
    attention_heads: int | None = None

    # The most tokens that a window reaches to the left, one entry for each encoder layer. A
    # language model has an empty list.
    encoder_l_max: Sequence[int] = (3, 7, 15, 31, 31, 31, 31)
    # The most tokens that a window reaches to the right, one entry for each encoder layer. "none"
    # is the same as encoder_l_max.
    encoder_r_max: Sequence[int] | None = None
    # The most tokens that a window reaches to the left, one entry for each decoder layer. A decoder
    # sees no token to the right.
    decoder_l_max: Sequence[int] = (3, 7, 15, 31, 31, 31)
    # The mixer of the encoder: "talk", "attention", "light" or "dynamic", or a list with one of
    # them for each layer.
    encoder_mixer: str | Sequence[str] = DEFAULT_MIXER
    # The mixer of the decoder, in the same words.
    decoder_mixer: str | Sequence[str] = DEFAULT_MIXER
    # With true, the sum over a window is divided by the largest size of a window. False is a row of
    # the paper's ablation, whose network diverges.
    normalize: bool = True
    # With true, a gated linear unit is before each convolution; with false, a plain linear layer.
    gate: bool = True
    # The activation of the feed-forward part: "swish" or "relu".
    activation: str = "swish"
    # With true, layer norms are before each part; with false, after its residual.
    norm_first: bool = False
    # With true, one more layer norm is after the last layer of each stack.
    final_norm: bool = False

    # Dropout of embeddings and of what each part adds to the residual.
    dropout: float = 0.1
    # Dropout of the weights of attention, both self-attention and attention over the encoder.
    attention_dropout: float = 0.0
    # Dropout after the activation of the feed-forward part.
    ff_dropout: float = 0.0
    # Dropout of the input of a convolution's gate.
    input_dropout: float = 0.0
    # Dropout of the offsets of TaLK convolutions.
    offset_dropout: float = 0.0
    # Dropout of the kernels of light and dynamic convolutions.
    weight_dropout: float = 0.0

    # With true, the encoder's input, the decoder's input and its output share one table of
    # embeddings.
    share_embeddings: bool = False
    # With true, the decoder's input and its output share one table of embeddings.
    tie_word_embeddings: bool = True
    # The entries of the vocabulary where the bands of an adaptive input and softmax begin, for the
    # large vocabularies of language models. An empty list means plain embeddings.
    adaptive_cutoffs: Sequence[int] = ()
    # Each band has so many times fewer channels than the band before.
    adaptive_factor: int = 4
    # Dropout of the reduced hidden states of the adaptive softmax.
    adaptive_dropout: float = 0.0

    # The share of the probability that the loss spreads over all words.
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        self.fill_in()
        self.check()

    def fill_in(self) -> None:
        """Replace None by the values that it stands for, and tuples by lists as in a JSON file."""
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

    def check(self) -> None:
        """Raise a ValueError if no network can have these settings."""
        self._check_sizes()
        self._check_layers()
        self._check_embeddings()

    @property
    def num_layers(self) -> int:
        """The number of layers of the decoder, or of an encoder alone."""
        return len(self.decoder_l_max) or len(self.encoder_l_max)

    @property
    def has_encoder(self) -> bool:
        return len(self.encoder_l_max) > 0

    @property
    def has_decoder(self) -> bool:
        return len(self.decoder_l_max) > 0

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
        if not self.has_encoder and not self.has_decoder:
            raise ValueError(
                "encoder_l_max or decoder_l_max must have one entry a layer, got two empty lists"
            )
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
                f"vocab_size={self.vocab_size}, got {self.adaptive_cutoffs}: choose smaller ones, "
                "or leave them out, as small vocabularies need none"
            )
        if self.has_encoder:
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
