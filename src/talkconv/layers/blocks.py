"""The blocks of a network: each has a mixer, a feed-forward part, norms, residuals and dropouts."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from talkconv.layers.cross_attention import CrossAttention, ProjectedStates
from talkconv.layers.dropout import Dropout
from talkconv.layers.make_mixer import make_mixer
from talkconv.layers.mixer import init_linear
from talkconv.network_settings import DEFAULT_MIXER, NetworkSettings

ACTIVATIONS = {"swish": F.silu, "relu": F.relu}


@dataclass(frozen=True)
class BlockSettings:
    """The settings of a block beyond its sizes. NetworkSettings explains them."""

    mixer: str = DEFAULT_MIXER
    gate: bool = NetworkSettings.gate
    activation: str = NetworkSettings.activation
    norm_first: bool = NetworkSettings.norm_first
    normalize: bool = NetworkSettings.normalize
    dropout: float = NetworkSettings.dropout
    input_dropout: float = NetworkSettings.input_dropout
    offset_dropout: float = NetworkSettings.offset_dropout
    weight_dropout: float = NetworkSettings.weight_dropout
    attention_dropout: float = NetworkSettings.attention_dropout
    ff_dropout: float = NetworkSettings.ff_dropout

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation must be one of {', '.join(ACTIVATIONS)}; got {self.activation!r}"
            )


class MixerUnit(nn.Module):
    """A mixer with its projections: x (B, T, dim) -> (B, T, dim).

    A convolution stands between a gate (or a linear layer) and a projection. Attention has
    projections of its own and gets no others, as in the ordinary Transformer.
    """

    def __init__(
        self, dim: int, heads: int, l_max: int, r_max: int, settings: BlockSettings
    ) -> None:
        super().__init__()
        self.mixer = make_mixer(
            settings.mixer,
            dim,
            heads,
            l_max,
            r_max,
            offset_dropout=settings.offset_dropout,
            weight_dropout=settings.weight_dropout,
            attention_dropout=settings.attention_dropout,
            normalize=settings.normalize,
        )
        self.projects = settings.mixer != "attention"
        if self.projects:
            self.gate = settings.gate
            self.input_dropout = Dropout(settings.input_dropout)
            self.in_proj = init_linear(nn.Linear(dim, 2 * dim if settings.gate else dim))
            self.out_proj = init_linear(nn.Linear(dim, dim))

    def forward(self, x: Tensor, *, state: Any = None, **padding: Tensor | None) -> Any:
        """Mix the tokens. `padding` is lengths, padding_mask or cu_seqlens; see Mixer."""
        if self.projects:
            x = self.in_proj(self.input_dropout(x))
            x = F.glu(x) if self.gate else x
        if state is None:
            mixed = self.mixer(x, **padding)
        else:
            mixed, state = self.mixer(x, state=state, **padding)
        mixed = self.out_proj(mixed) if self.projects else mixed
        return mixed if state is None else (mixed, state)


class FeedForward(nn.Module):
    """Applies two linear layers to each token separately: x (B, T, dim) -> (B, T, dim)."""

    def __init__(self, dim: int, ff_dim: int, settings: BlockSettings) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[settings.activation]
        self.widen = init_linear(nn.Linear(dim, ff_dim))
        self.dropout = Dropout(settings.ff_dropout)
        self.narrow = init_linear(nn.Linear(ff_dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        narrowed: Tensor = self.narrow(self.dropout(self.activation(self.widen(x))))
        return narrowed


class _Block(nn.Module):
    """The common base of both blocks. A norm stands before each part, or after its residual sum."""

    def __init__(self, settings: BlockSettings) -> None:
        super().__init__()
        self.settings = settings
        self.dropout = Dropout(settings.dropout)

    def _before(self, x: Tensor, norm: nn.LayerNorm) -> Tensor:
        return norm(x) if self.settings.norm_first else x

    def _after(self, x: Tensor, added: Tensor, norm: nn.LayerNorm) -> Tensor:
        total: Tensor = x + self.dropout(added)
        return total if self.settings.norm_first else norm(total)


class EncoderBlock(_Block):
    """Mixer and feed-forward: src (B, T, dim) -> (B, T, dim).

    It is called like torch.nn.TransformerEncoderLayer with batch_first=True. The keywords are the
    fields of BlockSettings.

    >>> block = EncoderBlock(8, heads=2, ff_dim=16, l_max=3, r_max=3, dropout=0.1)
    >>> network = nn.TransformerEncoder(block, num_layers=2, enable_nested_tensor=False)
    >>> network(torch.randn(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    def __init__(
        self, dim: int, heads: int, ff_dim: int, l_max: int, r_max: int, **settings: Any
    ) -> None:
        super().__init__(BlockSettings(**settings))
        self.mixer_unit = MixerUnit(dim, heads, l_max, r_max, self.settings)
        self.mixer_norm = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim, ff_dim, self.settings)
        self.feed_forward_norm = nn.LayerNorm(dim)

    @property
    def self_attn(self) -> nn.Module:
        """The mixer. torch.nn.TransformerEncoder reads its `batch_first`."""
        return self.mixer_unit.mixer

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
        *,
        lengths: Tensor | None = None,
        cu_seqlens: Tensor | None = None,
    ) -> Tensor:
        """Run the block. Padding is passed as to a mixer.

        src_mask and is_causal=True are accepted only by a causal block, and only for the causal
        mask, which the block follows anyway.
        """
        self._check_mask(src_mask, is_causal, src.shape[-2])
        mask = None if src_key_padding_mask is None else _as_bool(src_key_padding_mask)
        padding = dict(lengths=lengths, padding_mask=mask, cu_seqlens=cu_seqlens)
        x = src
        mixed = self.mixer_unit(self._before(x, self.mixer_norm), **padding)
        x = self._after(x, mixed, self.mixer_norm)
        fed = self.feed_forward(self._before(x, self.feed_forward_norm))
        return self._after(x, fed, self.feed_forward_norm)

    def _check_mask(self, mask: Tensor | None, is_causal: bool, T: int) -> None:
        if mask is None and not is_causal:
            return
        if not self.mixer_unit.mixer.causal:
            raise ValueError(
                "this block sees both sides of a token, so it accepts no src_mask and no "
                "is_causal=True; r_max=0 makes a causal block"
            )
        if mask is None or is_causal:
            return
        ahead = torch.ones(T, T, dtype=torch.bool, device=mask.device).triu(1)
        if mask.shape != (T, T) or not torch.equal(_as_bool(mask), ahead):
            raise ValueError(
                f"src_mask must be None or the causal mask (T, T) = {(T, T)}, because this block "
                "chooses its windows by its inputs; got another mask of shape "
                f"{tuple(mask.shape)}"
            )


class DecoderBlock(_Block):
    """Causal mixer, attention over an encoder if there is one, and feed-forward.

    x (B, T, dim) -> (B, T, dim), or (out, new state) when `state` is given. Without `encoder_dim`
    the block has no attention over an encoder, as in a language model. The keywords are the fields
    of BlockSettings.

    >>> block = DecoderBlock(8, heads=2, ff_dim=16, l_max=3, encoder_dim=8)
    >>> block(torch.randn(1, 5, 8), encoder_states=torch.randn(1, 7, 8)).shape
    torch.Size([1, 5, 8])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        ff_dim: int,
        l_max: int,
        *,
        encoder_dim: int | None = None,
        attention_heads: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(BlockSettings(**settings))
        self.mixer_unit = MixerUnit(dim, heads, l_max, 0, self.settings)
        self.mixer_norm = nn.LayerNorm(dim)
        self.cross_attention = None
        if encoder_dim is not None:
            self.cross_attention = CrossAttention(
                dim,
                heads if attention_heads is None else attention_heads,
                encoder_dim=encoder_dim,
                attention_dropout=self.settings.attention_dropout,
            )
            self.cross_attention_norm = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim, ff_dim, self.settings)
        self.feed_forward_norm = nn.LayerNorm(dim)

    def empty_state(
        self,
        batch: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        rollback: int = 0,
    ) -> Any:
        """Return the state before the first token. Only the mixer of a block has a state."""
        mixer = self.mixer_unit.mixer
        return mixer.empty_state(batch, dtype=dtype, device=device, rollback=rollback)

    def forward(
        self,
        x: Tensor,
        *,
        encoder_states: Tensor | ProjectedStates | None = None,
        encoder_padding_mask: Tensor | None = None,
        lengths: Tensor | None = None,
        padding_mask: Tensor | None = None,
        cu_seqlens: Tensor | None = None,
        state: Any = None,
        attentions: list[Tensor] | None = None,
    ) -> Any:
        """Read x, and the encoder_states (B, S, encoder_dim) if the block attends to an encoder.

        A generation of many steps projects the encoder_states once and passes ProjectedStates. If
        they hold B sentences, x may have B * n rows for n beams. The weights of the attention over
        the encoder (B * n, H, T, S) are appended to `attentions`.
        """
        projected = self._project(encoder_states, encoder_padding_mask)
        padding = dict(lengths=lengths, padding_mask=padding_mask, cu_seqlens=cu_seqlens)
        mixed = self.mixer_unit(self._before(x, self.mixer_norm), state=state, **padding)
        if state is not None:
            mixed, state = mixed
        x = self._after(x, mixed, self.mixer_norm)
        if self.cross_attention is not None and projected is not None:
            queries = self._before(x, self.cross_attention_norm)
            if attentions is not None:
                attentions.append(self.cross_attention.weights(queries, projected))
            x = self._after(x, self.cross_attention(queries, projected), self.cross_attention_norm)
        fed = self.feed_forward(self._before(x, self.feed_forward_norm))
        x = self._after(x, fed, self.feed_forward_norm)
        return x if state is None else (x, state)

    def _project(
        self, states: Tensor | ProjectedStates | None, padding_mask: Tensor | None
    ) -> ProjectedStates | None:
        if self.cross_attention is None:
            if states is not None:
                raise ValueError(
                    "this block has no attention over an encoder; encoder_dim= gives it one"
                )
            return None
        if states is None:
            raise ValueError(
                "encoder_states= is missing: this block attends to an encoder's states"
            )
        if not isinstance(states, ProjectedStates):
            return self.cross_attention.project(states, padding_mask)
        if padding_mask is not None:
            raise ValueError("ProjectedStates contain their padding: pass the mask to project()")
        return states


def _as_bool(mask: Tensor) -> Tensor:
    """Return a mask that is True at hidden tokens.

    torch.nn.TransformerEncoder passes masks to its layers as 0 and -infinity.
    """
    return mask if mask.dtype == torch.bool else mask == -torch.inf
