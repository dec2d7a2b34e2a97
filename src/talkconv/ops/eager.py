"""The operation in plain PyTorch operations, O(T): what runs where no kernel was built.

Running sums start anew with every block of tokens, as in the kernels, so that rounding does not
grow with the sequence.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from talkconv.ops.checks import check_values


class Reach(NamedTuple):
    """How far windows reach to one side: `whole` tokens, and one more by `part` in [0, 1)."""

    whole: Tensor  # int64
    part: Tensor
    moves: Tensor  # bool: the reach moves with its offset, neither clamped nor at an integer


def reach_of(offsets: Tensor, max_tokens: int, max_offset: float) -> Reach:
    """Split the reach in tokens into whole and part; positions stay integers.

    In float64 the product is exact for all narrower offsets, as in the compiled kernel.
    """
    offsets = offsets.to(sum_dtype(offsets))
    clamped = offsets.clamp(0, max_offset)
    tokens = clamped * max_tokens
    whole = tokens.nan_to_num().floor()
    part = tokens - whole  # NaN where the offset is
    return Reach(whole.long(), part, (part > 0) & (offsets == clamped))


def talk_conv(
    x: Tensor,
    left: Tensor,
    right: Tensor,
    l_max: int,
    r_max: int,
    max_offset: float,
    normalize: bool,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> Tensor:
    """x (B, T, C), offsets (B, T, H) -> (B, T, C); packed likewise."""
    if x.device.type == "cpu":
        check_values(x, lengths, cu_seqlens)
    if x.numel() == 0:
        return x.new_empty(x.shape)
    if cu_seqlens is not None:
        padding = Packing(cu_seqlens)
        x, left, right = (padding.pad(part) for part in (x, left, right))
        settings = (l_max, r_max, max_offset, normalize, padding.lengths)
        return padding.pack(_padded(x, left, right, settings))
    return _padded(x, left, right, (l_max, r_max, max_offset, normalize, lengths))


def talk_conv_backward(
    grad_out: Tensor,
    x: Tensor,
    left: Tensor,
    right: Tensor,
    l_max: int,
    r_max: int,
    max_offset: float,
    normalize: bool,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients to x, left and right."""
    if x.numel() == 0:
        return x.new_empty(x.shape), torch.zeros_like(left), torch.zeros_like(right)
    if cu_seqlens is not None:
        padding = Packing(cu_seqlens)
        grad_out, x, left, right = (padding.pad(part) for part in (grad_out, x, left, right))
        settings = (l_max, r_max, max_offset, normalize, padding.lengths)
        grads = _padded_backward(grad_out, x, left, right, settings)
        grad_x, grad_left, grad_right = (padding.pack(grad) for grad in grads)
        return grad_x, grad_left, grad_right
    return _padded_backward(
        grad_out, x, left, right, (l_max, r_max, max_offset, normalize, lengths)
    )


Settings = tuple[
    int, int, float, bool, Tensor | None
]  # l_max, r_max, max_offset, normalize, lengths


def scale_of(l_max: int, r_max: int, normalize: bool) -> float:
    return 1 / (l_max + r_max + 1) if normalize else 1.0


def by_head(x: Tensor, heads: int) -> Tensor:
    """(..., C) -> (..., H, R)."""
    # not unflatten or flatten: autograd.grad(is_grads_batched=True) does not know them
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads)


def side_by_side(heads: Tensor) -> Tensor:
    """(..., H, R) -> (..., C)."""
    return heads.reshape(*heads.shape[:-2], heads.shape[-2] * heads.shape[-1])


def sum_dtype(x: Tensor) -> torch.dtype:
    """Sums are taken in float64 as in the compiled kernel; only Apple's GPUs have none."""
    return torch.float32 if x.device.type == "mps" else torch.float64


def _padded(x: Tensor, left: Tensor, right: Tensor, settings: Settings) -> Tensor:
    l_max, r_max, max_offset, normalize, lengths = settings
    B, T, C = x.shape
    H = left.shape[-1]
    before, after, block = _block_sizes(T, l_max, r_max, max_offset)
    exists = _exists(x, lengths)
    x_masked = x if exists is None else x.masked_fill(~exists[..., None], 0)

    wide = sum_dtype(x)
    tokens = _blocks(x_masked.to(wide), before, after, block)  # (B, n, before + block + after, C)
    n = tokens.shape[1]
    # row k: the sum of the block's tokens before its k-th
    sums = by_head(F.pad(tokens.cumsum(2), (0, 0, 1, 0)), H)
    tokens = by_head(tokens, H)  # (B, n, W, H, R)

    to_left = reach_of(_blocks(left, 0, 0, block), l_max, max_offset)  # (B, n, block, H) each
    to_right = reach_of(_blocks(right, 0, 0, block), r_max, max_offset)
    at = before + torch.arange(block, device=x.device)[:, None]  # the token's own row
    start = torch.arange(n, device=x.device)[:, None, None] * block - before  # of the block's rows
    length = T if lengths is None else lengths[:, None, None, None]
    first = torch.maximum(at - to_left.whole, (-start).clamp(min=0))
    past = torch.minimum(
        at + to_right.whole + 1, (length - start) if lengths is not None else T - start
    )
    past = past.clamp(min=0)  # blocks of padding alone

    def rows(table: Tensor, index: Tensor) -> Tensor:
        index = index.clamp(0, table.shape[2] - 1)[..., None]
        return table.gather(2, index.expand(-1, -1, -1, -1, C // H))

    total = rows(sums, past) - rows(sums, first)
    has_left = (first + start > 0)[..., None]
    has_right = (past + start < length)[..., None]
    left_edge = rows(tokens, first - 1) * to_left.part[..., None].to(wide)
    right_edge = rows(tokens, past) * to_right.part[..., None].to(wide)
    total = total + torch.where(has_left, left_edge, 0) + torch.where(has_right, right_edge, 0)
    no_window = (to_left.part.isnan() | to_right.part.isnan())[..., None]
    out = torch.where(no_window, torch.nan, total * scale_of(l_max, r_max, normalize))
    out = out.reshape(B, n * block, C)[:, :T]
    return _zero_padding(out, exists).to(x.dtype)


def _padded_backward(
    grad_out: Tensor, x: Tensor, left: Tensor, right: Tensor, settings: Settings
) -> tuple[Tensor, Tensor, Tensor]:
    l_max, r_max, max_offset, normalize, lengths = settings
    B, T, C = x.shape
    H = left.shape[-1]
    exists = _exists(x, lengths)
    grad_left, grad_right = offset_grads(
        grad_out, x, left, right, l_max, r_max, max_offset, normalize, lengths, None
    )

    # tokens outside a block take part where their windows reach in
    reach_left, reach_right, block = _block_sizes(T, l_max, r_max, max_offset)
    before, after = reach_right + 1, reach_left + 1
    wide = sum_dtype(x)
    grads = grad_out.to(wide) * scale_of(l_max, r_max, normalize)
    grads = by_head(_blocks(_zero_padding(grads, exists), before, after, block), H)
    # without a window a token passes NaN to itself alone
    no_window = left.isnan() | right.isnan()
    left, right = left.masked_fill(no_window, 0), right.masked_fill(no_window, 0)
    to_left = reach_of(_blocks(left, before, after, block), l_max, max_offset)  # (B, n, W, H) each
    to_right = reach_of(_blocks(right, before, after, block), r_max, max_offset)
    n, W = grads.shape[1:3]
    at = torch.arange(W, device=x.device)[:, None] - before  # in rows of the block

    # a window adds four differences; their running sum is the gradient. Rows outside the block fold
    # onto its edges, which leaves the sums inside right
    differences = grads.new_zeros(B, n, block + 1, H, C // H)
    left_part, right_part = to_left.part.to(wide), to_right.part.to(wide)
    for row, weight in (
        (at - to_left.whole - 1, left_part),
        (at - to_left.whole, 1 - left_part),
        (at + to_right.whole + 1, right_part - 1),
        (at + to_right.whole + 2, -right_part),
    ):
        index = row.clamp(0, block)[..., None].expand_as(grads)
        differences.scatter_add_(2, index, grads * weight[..., None])
    grad_x = differences.cumsum(2)[:, :, :block].reshape(B, n * block, H, C // H)[:, :T]
    grad_x = side_by_side(grad_x.masked_fill(no_window[..., None], torch.nan))
    return _zero_padding(grad_x, exists).to(x.dtype), grad_left, grad_right


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
    """What the token at each edge of a window adds as the edge moves over it."""
    scale = scale_of(l_max, r_max, normalize)
    wide = sum_dtype(x)
    grads = by_head(grad_out.to(wide), left.shape[-1])
    edges = window_edges(x, left, right, l_max, r_max, max_offset, lengths, cu_seqlens)
    found = []
    for edge, offsets, max_tokens in zip(edges, (left, right), (l_max, r_max), strict=True):
        dot = (grads * edge.gather_from(x).to(wide)).sum(-1)
        weight = edge.weight(wide)
        # a token that is not there adds nothing, even if what lies in its place is NaN
        derivative = (dot * (scale * max_tokens) * weight).where(weight != 0, 0)
        found.append(derivative.to(offsets.dtype))
    return found[0], found[1]


class Edge(NamedTuple):
    """The token that a window holds in part, on one side: what moving the offset adds."""

    token: Tensor  # (..., T, H), its position in the tensor
    moves: Tensor  # bool, (..., T, H): the token exists and the reach moves with its offset
    is_nan: Tensor  # bool, (..., T, H)

    def gather_from(self, x: Tensor) -> Tensor:
        """(..., T, C) -> (..., T, H, R): each window's edge token; finite where there is none."""
        heads = by_head(x, self.token.shape[-1])
        index = self.token[..., None].expand_as(heads)
        return heads.gather(x.dim() - 2, index).masked_fill(~self.moves[..., None], 0)

    def scatter_to(self, values: Tensor) -> Tensor:
        """The transpose of gather_from: (..., T, H, R) -> (..., T, C)."""
        values = values.masked_fill(~self.moves[..., None], 0)
        index = self.token[..., None].expand_as(values)
        zeros = torch.zeros_like(values)
        return side_by_side(zeros.scatter_add(values.dim() - 3, index, values))

    def weight(self, dtype: torch.dtype) -> Tensor:
        """1 where the derivative exists, 0 where not, NaN where the offset was."""
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
    """The edges on both sides; works on padded and packed sequences alike."""
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
        reach = reach_of(offsets, max_tokens, max_offset)
        index = token + away * (reach.whole + 1)
        moves = reach.moves & exists & (index >= begin) & (index < end)
        edges.append(Edge(index.clamp(0, T - 1), moves, offsets.isnan() & exists))
    # an offset that is NaN takes the window from the other side too
    is_nan = edges[0].is_nan | edges[1].is_nan
    return edges[0]._replace(is_nan=is_nan), edges[1]._replace(is_nan=is_nan)


class Packing:
    """Between packed (N, ...) and padded (S, longest, ...)."""

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


def _block_sizes(T: int, l_max: int, r_max: int, max_offset: float) -> tuple[int, int, int]:
    """Reach to both sides and tokens a block. The block follows from the windows alone, so that a
    sequence gives the same bits whatever the padding; no longer than twice the window, so that
    rounding stays in proportion to it."""
    reach_left, reach_right = math.ceil(l_max * max_offset), math.ceil(r_max * max_offset)
    block = max(8, 2 ** (2 * (reach_left + reach_right) + 1).bit_length())
    return min(reach_left, T), min(reach_right, T), min(block, T)


def _blocks(x: Tensor, before: int, after: int, block: int) -> Tensor:
    """(B, T, C) -> (B, n, before + block + after, C): each block and its neighbours."""
    T = x.shape[1]
    n = -(-T // block)
    padded = F.pad(x, (0, 0, before, n * block - T + after))
    return padded.unfold(1, before + block + after, block).movedim(-1, 2)


def _exists(x: Tensor, lengths: Tensor | None) -> Tensor | None:
    if lengths is None:
        return None
    return torch.arange(x.shape[1], device=x.device) < lengths[:, None]  # (B, T)


def _zero_padding(x: Tensor, exists: Tensor | None) -> Tensor:
    return x if exists is None else x.masked_fill(~exists[..., None], 0)
