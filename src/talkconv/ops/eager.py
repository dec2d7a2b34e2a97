"""The operation in plain PyTorch operations, O(T). It is used if there is no compiled kernel.

Running sums start again with every block of tokens, as in the kernels, so that rounding errors do
not grow with the sequence. talk_conv() and talk_conv_backward() can be traced, and torch.export
decomposes the operator into them. Their running sums carry NaN and infinities to the end of a
block. The functions with `_confined` in their names keep these within the windows that contain
them; for that they must read the values. The compiled kernel does the same in csrc/repair.h.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from talkconv.ops.checks import check_values
from talkconv.ops.windows import (
    Packing,
    Reach,
    by_head,
    offset_grads,
    reach_in_tokens,
    scale_of,
    side_by_side,
    sum_dtype,
)


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
    context: int = 0,
) -> Tensor:
    """x (B, context + T, C), offsets (B, T, H) -> (B, T, C); packed likewise without context."""
    if x.device.type == "cpu":
        check_values(x, lengths, cu_seqlens)
    if x.numel() == 0:
        return x.new_empty(*left.shape[:-1], x.shape[-1])
    if context:
        left, right = (F.pad(side, (0, 0, context, 0)) for side in (left, right))
        out = _padded(x, left, right, (l_max, r_max, max_offset, normalize, lengths))
        return out[:, context:].contiguous()
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
    """Return the gradients to x, left and right."""
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


def talk_conv_confined(x: Tensor, *offsets_and_settings: Any, context: int = 0) -> Tensor:
    """Return talk_conv(), with NaN and infinities in x kept within the windows that hold them."""
    inputs: Any = (*offsets_and_settings, context)
    return _confined(lambda values: talk_conv(values, *inputs), x)


def talk_conv_backward_confined(
    grad_out: Tensor, x: Tensor, left: Tensor, right: Tensor, *settings: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Return talk_conv_backward(), with NaN and infinities in grad_out kept likewise."""
    grads = talk_conv_backward(grad_out, x, left, right, *settings)
    if grad_out.isfinite().all():
        return grads

    def grad_x(values: Tensor) -> Tensor:
        return talk_conv_backward(values, x.to(values.dtype), left, right, *settings)[0]

    # the gradient of an offset depends only on its own token, so it needs no repair
    return _confined(grad_x, grad_out.to(x.dtype)), *grads[1:]


def _confined(weighted_sums: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    """Return weighted_sums(values) where each sum holds only values of positive weight.

    The weights must not be negative.
    """
    finite = values.isfinite()
    if finite.all():
        return weighted_sums(values)

    def reached(kind: Tensor) -> Tensor:
        # float64 shows even the smallest weight
        return weighted_sums(kind.double()) > 0

    out = weighted_sums(values.where(finite, 0))
    above, below = reached(values == math.inf), reached(values == -math.inf)
    nan = reached(values.isnan()) | (above & below)
    return out.where(~above, math.inf).where(~below, -math.inf).where(~nan, math.nan)


# l_max, r_max, max_offset, normalize, lengths
Settings = tuple[int, int, float, bool, Tensor | None]


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
    # row k is the sum of the block's tokens before its k-th
    sums = by_head(F.pad(tokens.cumsum(2), (0, 0, 1, 0)), H)
    tokens = by_head(tokens, H)  # (B, n, W, H, R)

    to_left = Reach.of(_blocks(left, 0, 0, block), l_max, max_offset)  # (B, n, block, H) each
    to_right = Reach.of(_blocks(right, 0, 0, block), r_max, max_offset)
    at = before + torch.arange(block, device=x.device)[:, None]  # the token's own row
    # the position of the block's first row in the sequence
    start = torch.arange(n, device=x.device)[:, None, None] * block - before
    length = T if lengths is None else lengths[:, None, None, None]
    first = torch.maximum(at - to_left.whole, (-start).clamp(min=0))
    past = torch.minimum(
        at + to_right.whole + 1, (length - start) if lengths is not None else T - start
    )
    past = past.clamp(min=0)  # a block may hold nothing but padding

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

    # tokens outside a block add to it if their windows reach into it
    reach_left, reach_right, block = _block_sizes(T, l_max, r_max, max_offset)
    before, after = reach_right + 1, reach_left + 1
    wide = sum_dtype(x)
    grads = grad_out.to(wide) * scale_of(l_max, r_max, normalize)
    grads = by_head(_blocks(_zero_padding(grads, exists), before, after, block), H)
    # a token with a NaN offset has no window: it passes NaN to itself alone
    no_window = left.isnan() | right.isnan()
    left, right = left.masked_fill(no_window, 0), right.masked_fill(no_window, 0)
    to_left = Reach.of(_blocks(left, before, after, block), l_max, max_offset)  # (B, n, W, H) each
    to_right = Reach.of(_blocks(right, before, after, block), r_max, max_offset)
    n, W = grads.shape[1:3]
    at = torch.arange(W, device=x.device)[:, None] - before  # in rows of the block

    # A window adds four differences, and their running sum is the gradient. Rows outside the block
    # are clamped to its edges, which does not change the sums inside.
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


def _block_sizes(T: int, l_max: int, r_max: int, max_offset: float) -> tuple[int, int, int]:
    """Return the reach to both sides and the tokens of a block.

    The block follows from the windows alone, so that a sequence gives the same bits whatever the
    padding. It is at most twice the window, so that rounding stays in proportion to it.
    """
    reach_left, reach_right = (reach_in_tokens(most, max_offset) for most in (l_max, r_max))
    block = max(8, 2 ** (2 * (reach_left + reach_right) + 1).bit_length())
    return min(reach_left, T), min(reach_right, T), min(block, T)


def _blocks(x: Tensor, before: int, after: int, block: int) -> Tensor:
    """Cut into blocks with their neighbours: (B, T, C) -> (B, n, before + block + after, C)."""
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
