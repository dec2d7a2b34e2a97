"""The Triton kernel of grad_x for short windows, on tensor cores.

A program owns a block of tokens of one sequence and head, and walks over the tiles of tokens whose
windows may reach it. Inside a tile, what the block's tokens weigh in the tile's windows is a small
matrix, formed in registers and multiplied with the tile's gradients. The work grows with the
window, but nothing is sorted and no table goes to memory.
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
def _weights(token, middle, windows):
    """Return what each token (rows) weighs in the window around each middle (columns).

    It is 1 if the window holds the token whole, a part for the two at the edges, and 0 outside.
    """
    left, right, _ = windows
    token = token[:, None]
    first = (middle - left[0])[None, :]
    last = (middle + right[0])[None, :]
    weights = tl.where(token == first - 1, left[1].to(tl.float32)[None, :], 0.0)
    weights = tl.where(token == last + 1, right[1].to(tl.float32)[None, :], weights)
    return tl.where((token >= first) & (token <= last), 1.0, weights)


@triton.jit
def _split(values, dtype: tl.constexpr):
    """Return three pieces of half precision whose sum is values: 3 x 8 bits are all of float32."""
    high = values.to(dtype)
    rest = values - high.to(tl.float32)
    middle = rest.to(dtype)
    low = (rest - middle.to(tl.float32)).to(dtype)
    return high, middle, low


@triton.jit
def _product(weights, rows):
    """Return weights @ rows, (BLOCK, TILE) @ (TILE, CHANNELS), in float32.

    The operands are split into pieces whose products are exact; products that are too small for
    the last bit of the result are left out. The largest pieces come last: tensor cores round their
    accumulator toward zero, and a rounding of the small pieces' sum does not matter.
    """
    if rows.dtype == tl.float32:
        w_high, w_middle, w_low = _split(weights, tl.bfloat16)
        high, middle, low = _split(rows, tl.bfloat16)
        product = tl.dot(w_low, high)
        product = tl.dot(w_middle, middle, product)
        product = tl.dot(w_high, low, product)
        product = tl.dot(w_middle, high, product)
        product = tl.dot(w_high, middle, product)
        product = tl.dot(w_high, high, product)
    else:
        w_high, w_middle, _ = _split(weights, rows.dtype)
        product = tl.dot(w_middle, rows)
        product = tl.dot(w_high, rows, product)
    return product


@triton.jit(do_not_specialize=UNSPECIALIZED)
def dense_grad_x(
    grad_out,
    left,
    right,
    grad_x,
    lengths,
    ends,
    grad_out_strides,
    left_strides,
    right_strides,
    tokens,
    sequences,
    heads,
    head_channels,
    l_max,
    r_max,
    reach_left,
    reach_right,
    scale_bits,
    MAX_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Sum the gradients of the windows that hold each token; grad_x is contiguous.

    Wild elements are left out. A program owns BLOCK tokens and CHANNELS channels of one head.
    """
    program = tl.program_id(0)
    slices = tl.cdiv(head_channels, CHANNELS)
    head = program // slices % heads
    channel = program % slices * CHANNELS + tl.arange(0, CHANNELS)
    is_channel = channel < head_channels
    channel += head * head_channels
    batch, _, begin, rows, length, block = place_of(
        program // (heads * slices), tokens, lengths, ends, sequences, BLOCK
    )
    grad_out += batch * grad_out_strides[0] + begin.to(tl.int64) * grad_out_strides[1]
    sides = (
        side_of(left, left_strides, batch, begin, head, l_max, reach_left),
        side_of(right, right_strides, batch, begin, head, r_max, reach_right),
    )
    # windows before the block reach into it with their right side, those after it with their left
    first = block * BLOCK
    lowest = tl.maximum(first - reach_right, 0)
    highest = tl.where(first < length, tl.minimum(first + BLOCK + reach_left, length), lowest)
    own = first + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, CHANNELS), tl.float32)
    for start in range(lowest, highest, TILE):
        token = start + tl.arange(0, TILE)
        exists = token < highest
        grads = load_rows(grad_out, grad_out_strides[1], token, exists, channel, is_channel)
        # 0 * infinity is NaN: the product would carry one infinity to the whole block
        is_tame = tl.abs(grads.to(tl.float32)) < WILD
        grads = tl.where(is_tame, grads, 0.0).to(grads.dtype)
        weights = _weights(own, token, windows_of(sides, token, exists, MAX_OFFSET))
        # Each product starts from zero: tensor cores round toward zero, and a sum that went through
        # their accumulator from tile to tile would drift with the window.
        total += _product(weights, grads)
    total *= float64_of(scale_bits).to(tl.float32)
    row = batch * tokens + begin + own
    tl.store(
        grad_x + row[:, None] * (heads * head_channels) + channel[None, :],
        tl.where((own < length)[:, None], total, 0.0),
        mask=(own < rows)[:, None] & is_channel[None, :],
    )
