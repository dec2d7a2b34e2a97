"""The Triton kernel for the gradients of the offsets.

It reads every row of grad_out once, so it also marks where wild gradients and NaN offsets are, for
the kernel that repairs grad_x around them.
"""

import triton
import triton.language as tl

from talkconv.ops.gpu_windows import (
    UNSPECIALIZED,
    WILD,
    float64_of,
    load_rows,
    place_of,
    side_of,
    windows_of,
)


@triton.jit
def _store(grads, dot, most_tokens, moves, is_nan, is_row):
    """Store the gradients to one side's offsets: 0 where an edge does not move."""
    values = tl.where(moves, dot * most_tokens, 0.0)
    values = tl.where(is_nan, float("nan"), values)
    # no processor rounds float64 to half precision in one step
    if grads.dtype.element_ty != tl.float64:
        values = values.to(tl.float32)
    tl.store(grads, values, mask=is_row)


@triton.jit(do_not_specialize=UNSPECIALIZED)
def offset_grads(
    grad_out,
    x,
    left,
    right,
    grad_left,
    grad_right,
    wild,
    lengths,
    ends,
    grad_out_strides,
    x_strides,
    left_strides,
    right_strides,
    tokens,
    sequences,
    heads,
    l_max,
    r_max,
    reach_left,
    reach_right,
    scale_bits,
    MAX_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
    CHANNELS: tl.constexpr,
    SLICES: tl.constexpr,
    HEAD_CHANNELS: tl.constexpr,
):
    """Multiply each token's gradient with the two tokens that its window holds in part.

    An edge that moves takes in more of the token it stands on. The gradients are contiguous. A
    program owns BLOCK tokens of one head; `wild` has a mark for each of them.
    """
    program = tl.program_id(0)
    head = program % heads
    batch, _, begin, rows, length, block = place_of(
        program // heads, tokens, lengths, ends, sequences, BLOCK
    )
    grad_out += batch * grad_out_strides[0] + begin.to(tl.int64) * grad_out_strides[1]
    x += batch * x_strides[0] + begin.to(tl.int64) * x_strides[1]
    sides = (
        side_of(left, left_strides, batch, begin, head, l_max, reach_left),
        side_of(right, right_strides, batch, begin, head, r_max, reach_right),
    )
    own = block * BLOCK + tl.arange(0, BLOCK)
    exists = own < length
    to_left, to_right, is_nan = windows_of(sides, own, exists, MAX_OFFSET)
    before = own - to_left[0] - 1
    after = own + to_right[0] + 1
    left_moves = to_left[2] & (before >= 0)
    right_moves = to_right[2] & (after < length)

    # a sum over a head's channels cancels where a sum over a window does not: float64
    left_dots = tl.zeros((BLOCK, CHANNELS), tl.float64)
    right_dots = tl.zeros((BLOCK, CHANNELS), tl.float64)
    largest = tl.zeros((BLOCK, CHANNELS), tl.float32)
    scale = float64_of(scale_bits)
    for start in range(0, HEAD_CHANNELS, SLICES * CHANNELS):
        for k in tl.static_range(SLICES):
            channel = start + k * CHANNELS + tl.arange(0, CHANNELS)
            is_channel = channel < HEAD_CHANNELS
            channel += head * HEAD_CHANNELS
            grad = load_rows(grad_out, grad_out_strides[1], own, exists, channel, is_channel)
            size = tl.abs(grad.to(tl.float32))
            largest = tl.maximum(largest, size, propagate_nan=tl.PropagateNan.ALL)
            # scaled first: the largest numbers have a mean, but no sum
            grad = grad.to(tl.float64) * scale
            edge = load_rows(x, x_strides[1], before, left_moves, channel, is_channel)
            left_dots = tl.fma(grad, edge.to(tl.float64), left_dots)
            edge = load_rows(x, x_strides[1], after, right_moves, channel, is_channel)
            right_dots = tl.fma(grad, edge.to(tl.float64), right_dots)

    row = (batch * tokens + begin + own) * heads + head
    is_row = own < rows
    _store(grad_left + row, tl.sum(left_dots, axis=1), l_max, left_moves, is_nan, is_row)
    _store(grad_right + row, tl.sum(right_dots, axis=1), r_max, right_moves, is_nan, is_row)
    is_wild = tl.max(tl.where(largest < WILD, 0, 1), axis=1) | is_nan.to(tl.int32)
    tl.store(wild + program, tl.max(is_wild, axis=0).to(tl.int8))
