"""The Triton kernel that sums each window token by token, in float64.

Its work grows with the window, but an element is only ever added to the windows that hold it. It
computes decoding steps and float64, and it repairs the blocks of the faster kernels that hold wild
elements.
"""

import triton
import triton.language as tl

from talkconv.ops.gpu_windows import (
    UNSPECIALIZED,
    first_row_of,
    float64_of,
    load_rows,
    place_of,
    side_of,
    windows_of,
)


@triton.jit
def _has_wild(wild, first_row, low, high, columns, first_column, last_column, UNIT: tl.constexpr):
    """Return whether a token from low to high is marked: `wild` has a row for each UNIT tokens."""
    found = tl.zeros((32,), tl.int8)
    for column in range(first_column, last_column + 1):
        for start in range(low // UNIT, high // UNIT + 1, 32):
            unit = start + tl.arange(0, 32)
            marks = wild + (first_row + unit) * columns + column
            found |= tl.load(marks, mask=unit <= high // UNIT, other=0)
    return tl.max(found, axis=0) != 0


@triton.jit
def _window_sum(values, stride, at, length, window, scale, channel, is_channel, TILE: tl.constexpr):
    """Sum the rows in the window of the token `at`, times scale: (CHANNELS,)."""
    left_whole, left_part, right_whole, right_part = window
    before = at - left_whole - 1
    after = at + right_whole + 1
    total = tl.zeros((channel.shape[0],), tl.float64)
    for start in range(tl.maximum(before, 0), tl.minimum(after + 1, length), TILE):
        token = start + tl.arange(0, TILE)
        weight = tl.where(token == before, left_part, tl.where(token == after, right_part, 1.0))
        is_held = (token <= after) & (token < length) & (weight != 0)
        rows = load_rows(values, stride, token, is_held, channel, is_channel).to(tl.float64)
        # The weight is scaled first: two of the largest numbers have a mean, but no sum.
        total += tl.sum((weight * scale)[:, None] * rows, axis=0)
    return total


@triton.jit
def _sum_of_windows_that_hold(
    values,
    stride,
    at,
    span,
    sides,
    scale,
    channel,
    is_channel,
    MAX_OFFSET: tl.constexpr,
    TILE: tl.constexpr,
):
    """Sum the rows of all tokens in whose windows the token `at` lies, times scale: (CHANNELS,)."""
    total = tl.zeros((channel.shape[0],), tl.float64)
    lowest, highest = span
    for start in range(lowest, highest, TILE):
        token = start + tl.arange(0, TILE)
        exists = token < highest
        left, right, is_nan = windows_of(sides, token, exists, MAX_OFFSET)
        before = token - left[0] - 1
        after = token + right[0] + 1
        weight = tl.where((before < at) & (at < after), 1.0, 0.0).to(tl.float64)
        weight = tl.where(before == at, left[1], tl.where(after == at, right[1], weight))
        weight = tl.where(is_nan & (token == at), float("nan"), weight)
        is_held = exists & (weight != 0)
        rows = load_rows(values, stride, token, is_held, channel, is_channel).to(tl.float64)
        total += tl.sum(tl.where(is_held, weight * scale, 0.0)[:, None] * rows, axis=0)
    return total


@triton.jit(do_not_specialize=UNSPECIALIZED)
def direct(
    values,
    left,
    right,
    out,
    lengths,
    ends,
    wild,
    values_strides,
    left_strides,
    right_strides,
    tokens,
    context,
    sequences,
    heads,
    head_channels,
    wild_channels,
    l_max,
    r_max,
    reach_left,
    reach_right,
    scale_bits,
    TRANSPOSED: tl.constexpr,
    MAX_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    CHANNELS: tl.constexpr,
    UNIT: tl.constexpr,
):
    """Sum values over the windows of all tokens; TRANSPOSED, over the windows that hold a token.

    `values` has `context` rows more in front of each sequence than `out`, which is contiguous. A
    program owns BLOCK tokens and CHANNELS channels of one head. With `wild`, it leaves a block as
    it is if none of its windows reach a token that is marked there; a column of `wild` has the
    marks of `wild_channels` channels.
    """
    program = tl.program_id(0)
    slices = tl.cdiv(head_channels, CHANNELS)
    head = program // slices % heads
    channel = program % slices * CHANNELS + tl.arange(0, CHANNELS)
    is_channel = channel < head_channels
    channel += head * head_channels
    slot = program // (heads * slices)
    batch, sequence, begin, rows, length, block = place_of(
        slot, tokens, lengths, ends, sequences, BLOCK
    )
    first = block * BLOCK
    length += context
    low = context + first - (reach_right if TRANSPOSED else reach_left)
    high = context + first + BLOCK + (reach_left if TRANSPOSED else reach_right)
    if wild is not None:
        # the fast kernels read up to two tokens beyond a window
        marks = first_row_of(sequence, begin, tokens + context, ends, UNIT)
        first_column = head * head_channels // wild_channels
        last_column = (head * head_channels + head_channels - 1) // wild_channels
        if not _has_wild(
            wild,
            marks,
            tl.maximum(low - 2, 0),
            tl.minimum(high + 2, rows + context),
            tl.cdiv(heads * head_channels, wild_channels),
            first_column,
            last_column,
            UNIT,
        ):
            return
    values += batch * values_strides[0] + begin.to(tl.int64) * values_strides[1]
    sides = (
        side_of(left, left_strides, batch, begin, head, l_max, reach_left),
        side_of(right, right_strides, batch, begin, head, r_max, reach_right),
    )
    scale = float64_of(scale_bits)
    channels = heads * head_channels
    out += (batch * tokens + begin) * channels + channel
    for k in range(0, tl.minimum(rows - first, BLOCK)):
        own = first + k
        total = tl.zeros((CHANNELS,), tl.float64)
        exists = own + context < length
        if exists:
            if TRANSPOSED:
                span = tl.maximum(own - reach_right, 0), tl.minimum(own + reach_left + 1, length)
                total = _sum_of_windows_that_hold(
                    values, values_strides[1], own, span, sides, scale, channel, is_channel,
                    MAX_OFFSET, TILE,
                )  # fmt: skip
            else:
                to_left, to_right, is_nan = windows_of(sides, own, exists, MAX_OFFSET)
                window = to_left[0], to_left[1], to_right[0], to_right[1]
                total = _window_sum(
                    values, values_strides[1], own + context, length, window, scale, channel,
                    is_channel, TILE,
                )  # fmt: skip
                total = tl.where(is_nan, float("nan"), total)
        # no processor rounds float64 to half precision in one step
        if out.dtype.element_ty != tl.float64:
            total = total.to(tl.float32)
        tl.store(out + own.to(tl.int64) * channels, total, mask=is_channel)
