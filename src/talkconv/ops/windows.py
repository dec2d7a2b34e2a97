"""The arithmetic of windows: reach, edges, scale and packing, shared by all of the operation."""

import math
from typing import NamedTuple

import torch
from torch import Tensor


def scale_of(l_max: int, r_max: int, normalize: bool) -> float:
    """Return the factor by which the sum over a window is multiplied."""
    return 1 / (l_max + r_max + 1) if normalize else 1.0


def reach_in_tokens(max_tokens: int, max_offset: float) -> int:
    """Return the largest number of tokens that a window can reach to one side."""
    return math.ceil(max_tokens * max_offset)


def by_head(x: Tensor, heads: int) -> Tensor:
    """Split the channels into heads: (..., C) -> (..., H, R)."""
    # unflatten and flatten have no batching rule for autograd.grad(is_grads_batched=True)
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads)


def side_by_side(heads: Tensor) -> Tensor:
    """Join the heads into channels: (..., H, R) -> (..., C)."""
    return heads.reshape(*heads.shape[:-2], heads.shape[-2] * heads.shape[-1])


def sum_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype of sums: float64 as in the compiled kernel, except on Apple's GPUs."""
    return torch.float32 if x.device.type == "mps" else torch.float64


class Reach(NamedTuple):
    """The reach to one side: `whole` tokens, and one more with weight `part` in [0, 1)."""

    whole: Tensor  # int64
    part: Tensor
    moves: Tensor  # bool: the offset is neither clamped nor exactly at a token

    @classmethod
    def of(cls, offsets: Tensor, max_tokens: int, max_offset: float) -> "Reach":
        """Split the reach in tokens into whole and part; positions stay integers.

        float64 holds the product exactly for all narrower offsets, as in the compiled kernel.
        """
        offsets = offsets.to(sum_dtype(offsets))
        clamped = offsets.clamp(0, max_offset)
        tokens = clamped * max_tokens
        whole = tokens.nan_to_num().floor()
        part = tokens - whole  # NaN where the offset is NaN
        return cls(whole.long(), part, (part > 0) & (offsets == clamped))


class Edge(NamedTuple):
    """The token on one side of each window that counts in part. It depends on the offset."""

    token: Tensor  # (..., T, H), its position in the tensor
    moves: Tensor  # bool, (..., T, H): the token exists and the reach moves with its offset
    is_nan: Tensor  # bool, (..., T, H)

    def gather_from(self, x: Tensor) -> Tensor:
        """Return each window's edge token, and 0 where there is none: (..., C) -> (..., H, R)."""
        heads = by_head(x, self.token.shape[-1])
        index = self.token[..., None].expand_as(heads)
        return heads.gather(x.dim() - 2, index).masked_fill(~self.moves[..., None], 0)

    def scatter_to(self, values: Tensor) -> Tensor:
        """Apply the transpose of gather_from(): (..., T, H, R) -> (..., T, C)."""
        values = values.masked_fill(~self.moves[..., None], 0)
        index = self.token[..., None].expand_as(values)
        zeros = torch.zeros_like(values)
        return side_by_side(zeros.scatter_add(values.dim() - 3, index, values))

    def weight(self, dtype: torch.dtype) -> Tensor:
        """Return 1 where the derivative exists, 0 where not, and NaN where the offset is NaN."""
        return self.moves.to(dtype).masked_fill(self.is_nan, torch.nan)


def window_edges(
    x: Tensor,
    left: Tensor,
    right: Tensor,
    l_max: int,
    r_max: int,
    max_offset: float,
    lengths: Tensor | None,
    cu_seqlens: Tensor | None,
) -> tuple[Edge, Edge]:
    """Return the left and right edges of all windows, of padded or packed sequences."""
    T = x.shape[-2]
    token = torch.arange(T, device=x.device)
    begin, end = torch.zeros_like(token[:1]), torch.full_like(token[:1], T)
    if cu_seqlens is not None:
        sequence = torch.searchsorted(cu_seqlens[1:].contiguous(), token, right=True)
        begin, end = cu_seqlens[sequence], cu_seqlens[sequence + 1]
    elif lengths is not None:
        end = lengths[:, None]
    exists = (token < end)[..., None]
    begin, end, token = begin[..., None], end[..., None], token[:, None]
    edges = []
    for offsets, max_tokens, away in ((left, l_max, -1), (right, r_max, 1)):
        reach = Reach.of(offsets, max_tokens, max_offset)
        index = token + away * (reach.whole + 1)
        moves = reach.moves & exists & (index >= begin) & (index < end)
        edges.append(Edge(index.clamp(0, T - 1), moves, offsets.isnan() & exists))
    # a window with one NaN offset has no meaning, so both of its edges are NaN
    is_nan = edges[0].is_nan | edges[1].is_nan
    return edges[0]._replace(is_nan=is_nan), edges[1]._replace(is_nan=is_nan)


def offset_grads(
    grad_out: Tensor,
    x: Tensor,
    left: Tensor,
    right: Tensor,
    l_max: int,
    r_max: int,
    max_offset: float,
    normalize: bool,
    lengths: Tensor | None,
    cu_seqlens: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Return the gradients to left and right. They depend on the tokens at the windows' edges."""
    scale = scale_of(l_max, r_max, normalize)
    wide = sum_dtype(x)
    grads = by_head(grad_out.to(wide), left.shape[-1])
    edges = window_edges(x, left, right, l_max, r_max, max_offset, lengths, cu_seqlens)
    found = []
    for edge, offsets, max_tokens in zip(edges, (left, right), (l_max, r_max), strict=True):
        dot = (grads * edge.gather_from(x).to(wide)).sum(-1)
        weight = edge.weight(wide)
        # a token that does not exist adds nothing, even if the value in its place is NaN
        derivative = (dot * (scale * max_tokens) * weight).where(weight != 0, 0)
        found.append(derivative.to(offsets.dtype))
    return found[0], found[1]


class Packing:
    """Converts between packed (N, ...) and padded (S, longest, ...) sequences."""

    def __init__(self, cu_seqlens: Tensor) -> None:
        self.lengths = cu_seqlens.diff()
        longest = int(self.lengths.max()) if len(self.lengths) else 0
        self._exists = torch.arange(longest, device=cu_seqlens.device) < self.lengths[:, None]

    def pad(self, packed: Tensor) -> Tensor:
        padded = packed.new_zeros(*self._exists.shape, *packed.shape[1:])
        padded[self._exists] = packed
        return padded

    def pack(self, padded: Tensor) -> Tensor:
        return padded[self._exists]
