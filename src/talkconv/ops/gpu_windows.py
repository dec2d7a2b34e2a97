"""The parts that all Triton kernels share: where a program works, and the windows of its tokens.

A `place` is (batch, sequence, begin, rows, length, block): the row of the batch, the number of the
sequence, its first row in time, its rows, how many of them exist, and the block of the program. The
row of the batch has 64 bits because addresses are made from it; the others have 32.

A `side` of the windows is (offsets or None, stride between tokens, most tokens, reach), its pointer
already at the sequence and head; `sides` are left and right.
"""

import triton
import triton.language as tl

# These numbers change from call to call and make no kernel faster: Triton would only compile longer
# if it made a kernel for each value.
UNSPECIALIZED = (
    "tokens",
    "context",
    "sequences",
    "heads",
    "l_max",
    "r_max",
    "reach_left",
    "reach_right",
    "scale_bits",
)

# Elements from here on, infinities and NaN are wild: they are left out of the fast sums and added
# one by one. Below it, rounding in float64 stays under 1e-6 even next to the largest element, and
# bfloat16 pieces do not overflow.
WILD = tl.constexpr(2.0**31)


@triton.jit
def float64_of(bits):
    """Return the float64 with these bits: as a number, Triton would pass 32 bits of it."""
    return bits.to(tl.float64, bitcast=True)


@triton.jit
def place_of(slot, tokens, lengths, ends, sequences, BLOCK: tl.constexpr):
    """Return the place of a slot. Every sequence has tokens // BLOCK + 1 slots or more."""
    if ends is None:
        place = _place_in_padded(slot, tokens, lengths, BLOCK)
    else:
        place = _place_in_packed(slot, ends, sequences, BLOCK)
    return place


@triton.jit
def _place_in_padded(slot, tokens, lengths, BLOCK: tl.constexpr):
    blocks = tokens // BLOCK + 1
    sequence = slot // blocks
    length = tokens
    if lengths is not None:
        length = tl.load(lengths + sequence)
        length = tl.minimum(tl.maximum(length, 0), tokens).to(tl.int32)
    return sequence.to(tl.int64), sequence, sequence * 0, tokens, length, slot - sequence * blocks


@triton.jit
def _place_in_packed(slot, ends, sequences, BLOCK: tl.constexpr):
    # Sequence s takes the slots from ends[s] // BLOCK + s on: never fewer than it has blocks, and
    # known without a table or a look at the lengths from the host. Spare slots own no token.
    low = slot * 0
    high = low + sequences - 1
    while low < high:
        middle = (low + high + 1) // 2
        is_past = tl.load(ends + middle) // BLOCK + middle > slot
        low = tl.where(is_past, low, middle)
        high = tl.where(is_past, middle - 1, high)
    begin = tl.load(ends + low)
    rows = tl.load(ends + low + 1) - begin
    # the first and the last one stand for the rows that no sequence covers
    length = tl.where((low > 0) & (low < sequences - 1), rows, 0)
    return (slot * 0).to(tl.int64), low, begin, rows, length, slot - begin // BLOCK - low


@triton.jit
def first_row_of(sequence, begin, tokens, ends, UNIT: tl.constexpr):
    """Return a sequence's first row in a table with a row for every UNIT tokens and one more."""
    if ends is None:
        row = sequence.to(tl.int64) * (tokens // UNIT + 1)
    else:
        row = (begin // UNIT + sequence).to(tl.int64)
    return row


@triton.jit
def side_of(offsets, strides, batch, begin, head, most_tokens, reach):
    """Return one side of the windows of one sequence and head."""
    if offsets is not None:
        offsets += batch * strides[0] + begin.to(tl.int64) * strides[1] + head
    return offsets, strides[1], most_tokens, reach


@triton.jit
def _reach(side, token, exists, MAX_OFFSET: tl.constexpr):
    """Return how far windows reach to one side: whole tokens, and the part of one more.

    The third result tells whether that part moves with the offset (it is neither clamped nor at an
    integer), the fourth whether the offset is NaN.
    """
    offsets, stride, most_tokens, limit = side
    # in float64 the product is exact for all narrower offsets, as in the compiled CPU kernel
    offset = (token * 0).to(tl.float64)
    if offsets is not None:
        at = offsets + token.to(tl.int64) * stride
        offset = tl.load(at, mask=exists, other=0).to(tl.float64)
    clamped = tl.where(offset > 0, tl.where(offset < MAX_OFFSET, offset, MAX_OFFSET), 0.0)
    reach = clamped * most_tokens
    # no token lies beyond the limit, and the conversion stays defined where the product is huge
    is_near = reach < limit
    whole = tl.where(is_near, reach, 0.0).to(tl.int32)
    part = tl.where(is_near, reach - whole, 0.0)
    moves = (part > 0) & (offset == clamped)
    return tl.where(is_near, whole, limit), part, moves, offset != offset


@triton.jit
def windows_of(sides, token, exists, MAX_OFFSET: tl.constexpr):
    """Return (whole, part, moves) to the left, the same to the right, and is_nan."""
    left_whole, left_part, left_moves, left_nan = _reach(sides[0], token, exists, MAX_OFFSET)
    right_whole, right_part, right_moves, right_nan = _reach(sides[1], token, exists, MAX_OFFSET)
    # a window with a NaN offset has no meaning: it holds its own token, and the result is NaN
    is_nan = left_nan | right_nan
    left = tl.where(is_nan, 0, left_whole), tl.where(is_nan, 0.0, left_part), left_moves & ~is_nan
    right = (
        tl.where(is_nan, 0, right_whole),
        tl.where(is_nan, 0.0, right_part),
        right_moves & ~is_nan,
    )
    return left, right, is_nan


@triton.jit
def load_rows(x, token_stride, token, exists, channel, is_channel):
    """Load rows of x by token, and 0 where there is none: (tokens, CHANNELS)."""
    return tl.load(
        x + token.to(tl.int64)[:, None] * token_stride + channel[None, :],
        mask=exists[:, None] & is_channel[None, :],
        other=0,
    )
