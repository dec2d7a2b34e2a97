"""Attention of a decoder over its encoder, without a copy of the encoder's states per beam."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from talkconv.layers.attend import attend
from talkconv.layers.mixer import init_linear
from talkconv.network_settings import NetworkSettings


@dataclass(frozen=True)
class ProjectedStates:
    """The keys and values of the encoder's states, (B, H, S, R) each, made once per sentence."""

    keys: Tensor
    values: Tensor
    exists: Tensor | None  # (B, 1, 1, S), False at padding

    def reorder(self, index: Tensor) -> "ProjectedStates":
        """Return states in which sentence k is the former sentence index[k].

        When beams change places within their sentence, nothing needs to be reordered.
        """
        exists = None if self.exists is None else self.exists.index_select(0, index)
        return ProjectedStates(
            self.keys.index_select(0, index), self.values.index_select(0, index), exists
        )


class CrossAttention(nn.Module):
    """Attends to the encoder's states of B sentences: x (B * n, t, dim) -> (B * n, t, dim).

    The n beams of a sentence are adjacent rows of x. Queries do not see one another, so the beams
    are computed as one row of n * t queries, and the encoder's states need not be repeated.

    >>> attention = CrossAttention(8, heads=2)
    >>> projected = attention.project(torch.randn(1, 7, 8))
    >>> attention(torch.randn(5, 1, 8), projected).shape
    torch.Size([5, 1, 8])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        encoder_dim: int | None = None,
        attention_dropout: float = NetworkSettings.attention_dropout,
    ) -> None:
        super().__init__()
        if heads < 1 or dim % heads:
            raise ValueError(f"heads must divide dim, got {dim=}, {heads=}")
        self.dim = dim
        self.heads = heads
        self.encoder_dim = dim if encoder_dim is None else encoder_dim
        self.attention_dropout = attention_dropout
        # With this gain the weights start as if the three layers were one, as in self-attention,
        # so that the first scores are no larger than there.
        gain = 0.5**0.5
        self.to_query = init_linear(nn.Linear(dim, dim), gain)
        self.to_key = init_linear(nn.Linear(self.encoder_dim, dim), gain)
        self.to_value = init_linear(nn.Linear(self.encoder_dim, dim), gain)
        self.to_out = init_linear(nn.Linear(dim, dim))

    def project(
        self, encoder_states: Tensor, padding_mask: Tensor | None = None
    ) -> ProjectedStates:
        """Make keys and values of encoder_states (B, S, encoder_dim).

        padding_mask (B, S) is True at padding.
        """
        if encoder_states.dim() != 3 or encoder_states.shape[-1] != self.encoder_dim:
            raise ValueError(
                "encoder_states must be (B, S, encoder_dim) with encoder_dim = "
                f"{self.encoder_dim}, got {tuple(encoder_states.shape)}"
            )
        if padding_mask is not None and (
            padding_mask.shape != encoder_states.shape[:2] or padding_mask.dtype != torch.bool
        ):
            raise ValueError(
                "the padding mask of encoder_states must be bool (B, S) = "
                f"{tuple(encoder_states.shape[:2])}, True at padding, "
                f"got {padding_mask.dtype} {tuple(padding_mask.shape)}"
            )
        exists = None if padding_mask is None else ~padding_mask[:, None, None]
        keys, values = (self._split(part(encoder_states)) for part in (self.to_key, self.to_value))
        return ProjectedStates(keys, values, exists)

    def forward(self, x: Tensor, projected: ProjectedStates) -> Tensor:
        queries = self._queries(x, projected)
        out = attend(
            queries,
            projected.keys,
            projected.values,
            mask=projected.exists,
            dropout_p=self.attention_dropout if self.training else 0.0,
        )
        attended: Tensor = self.to_out(out.transpose(1, 2).reshape(x.shape))
        return attended

    def weights(self, x: Tensor, projected: ProjectedStates) -> Tensor:
        """Return how much each token looks at each state of the encoder: (B * n, H, t, S)."""
        queries = self._queries(x, projected)
        scores = queries @ projected.keys.transpose(-1, -2) * queries.shape[-1] ** -0.5
        if projected.exists is not None:
            scores = scores.masked_fill(~projected.exists, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1).unflatten(2, (-1, x.shape[1]))  # (B, H, n, t, S)
        by_row: Tensor = weights.transpose(1, 2).flatten(0, 1)
        return by_row

    def _queries(self, x: Tensor, projected: ProjectedStates) -> Tensor:
        """Return the queries: x (B * n, t, dim) -> (B, H, n * t, R)."""
        rows, t, _ = x.shape
        B = projected.keys.shape[0]
        beams = rows // B if B else 0
        if beams * B != rows:
            raise ValueError(
                f"x must hold the same number of rows for each of the {B} sentences of the "
                f"encoder, got {rows} rows"
            )
        return self._split(self.to_query(x).view(B, beams * t, self.dim))

    def _split(self, x: Tensor) -> Tensor:
        """Split the channels into heads: (B, T, dim) -> (B, H, T, R)."""
        heads: Tensor = x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return heads

    def extra_repr(self) -> str:
        return f"{self.dim}, heads={self.heads}, encoder_dim={self.encoder_dim}"
