"""The Triton kernels of the forward, whose work does not grow with the window.

Sums run along each chunk of tokens in float64; every fourth one goes to memory, and so does the sum
of each whole chunk. A window is then the difference of two sums, corrected by at most two tokens at
each edge. float64 holds these differences to about 1e-16 of the largest element in a chunk, so
float32 results do not suffer from them, whatever the length of the window or of the sequence.

All sums leave out wild elements, which would spoil the windows that come after them in the chunk.
"""

import triton
import triton.language as tl

from talkconv.ops.gpu_windows import (
    UNSPECIALIZED,
    WILD,
    first_row_of,
    float64_of,
    place_of,
    side_of,
    windows_of,
)

# a running sum goes to memory for every group of so many tokens
GROUP = tl.constexpr(4)


@triton.jit(do_not_specialize=UNSPECIALIZED)
def chunk_sums(
    x,
    sums,
    totals,
    wild,
    lengths,
    ends,
    x_strides,
    tokens,
    sequences,
    channels,
    CHUNK: tl.constexpr,
    CHANNELS: tl.constexpr,
    STEP: tl.constexpr,
):
    """Sum each chunk of x: (rows, channels) in float64.

    Row m of a sequence in `sums` has the sum of its chunk's tokens before 4 m + 2, row c in
    `totals` the sum of chunk c. `wild` marks the chunks that hold a wild element. A program owns
    one chunk and CHANNELS channels; it loads STEP tokens at a time.
    """
    program = tl.program_id(0)
    slabs = tl.cdiv(channels, CHANNELS)
    slot = program // slabs
    channel = program % slabs * CHANNELS + tl.arange(0, CHANNELS)
    is_channel = channel < channels
    batch, sequence, begin, _, length, chunk = place_of(
        slot, tokens, lengths, ends, sequences, CHUNK
    )
    first = chunk * CHUNK
    x += batch * x_strides[0] + (begin + first).to(tl.int64) * x_strides[1] + channel
    first_row = first_row_of(sequence, begin, tokens, ends, GROUP)
    sums += (first_row + first // GROUP) * channels + channel
    count = tl.minimum(tl.maximum(length - first, -1), CHUNK)
    # the tokens of the chunk that a channel has
    ends_at = tl.where(is_channel, count, -1)
    total = tl.zeros((CHANNELS,), tl.float64)
    largest = tl.zeros((CHANNELS,), tl.float32)
    # one token more than exist: a window may end where the next group begins
    for start in range(0, tl.minimum(count + 1, CHUNK), STEP):
        for group in tl.static_range(STEP // GROUP):
            for k in tl.static_range(GROUP):
                token = start + group * GROUP
                if k == GROUP // 2:
                    at = sums + group * channels
                    tl.store(at, total, mask=ends_at >= token)
                at = x + (group * GROUP + k) * x_strides[1]
                element = tl.load(at, mask=ends_at > token + k, other=0)
                size = tl.abs(element.to(tl.float32))
                largest = tl.maximum(largest, size, propagate_nan=tl.PropagateNan.ALL)
                total += tl.where(size < WILD, element.to(tl.float32), 0.0).to(tl.float64)
        x += STEP * x_strides[1]
        sums += STEP // GROUP * channels
    tl.store(totals + slot.to(tl.int64) * channels + channel, total, mask=is_channel)
    is_wild = tl.where(largest < WILD, 0, 1)
    tl.store(wild + program, tl.max(is_wild, axis=0).to(tl.int8))


@triton.jit(do_not_specialize=UNSPECIALIZED)
def scan_totals(
    totals,
    bases,
    ends,
    tokens,
    sequences,
    channels,
    CHUNK: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Sum the totals of all earlier chunks of a sequence, for each chunk: (rows, channels).

    A program owns all chunks of one sequence and CHANNELS channels.
    """
    program = tl.program_id(0)
    slabs = tl.cdiv(channels, CHANNELS)
    sequence = program // slabs
    channel = program % slabs * CHANNELS + tl.arange(0, CHANNELS)
    is_channel = channel < channels
    begin = sequence * 0
    rows = tokens
    if ends is not None:
        begin = tl.load(ends + sequence)
        rows = tl.load(ends + sequence + 1) - begin
    chunks = rows // CHUNK + 1
    first = first_row_of(sequence, begin, tokens, ends, CHUNK) * channels + channel
    before = tl.zeros((CHANNELS,), tl.float64)
    tl.store(bases + first, before, mask=is_channel)
    for start in range(0, chunks, ROWS):
        chunk = start + tl.arange(0, ROWS)
        at = first[None, :] + chunk.to(tl.int64)[:, None] * channels
        is_chunk = (chunk < chunks)[:, None] & is_channel[None, :]
        found = tl.load(totals + at, mask=is_chunk, other=0)
        has_next = (chunk + 1 < chunks)[:, None] & is_channel[None, :]
        tl.store(bases + at + channels, before[None, :] + tl.cumsum(found, axis=0), mask=has_next)
        before += tl.sum(found, axis=0)


@triton.jit
def _edge(token, weight, end):
    """Return how to sum all tokens before `token`, and that one times weight, from a group's sum.

    The sum of the group that holds the token ends in the middle of the group. The result is the
    factor of the token, whether it counts, the neighbour to add or subtract, its factor, and
    whether it counts.
    """
    place = token & (GROUP - 1)
    factor = tl.where(place < GROUP // 2, weight - 1, weight)
    neighbour = tl.where(place == 0, token + 1, token - 1)
    sign = tl.where(place == 0, -1.0, 1.0).to(tl.float64)
    has_neighbour = ((place == 0) | (place == GROUP - 1)) & (neighbour < end)
    return factor, (factor != 0) & (token < end), neighbour, sign, has_neighbour


@triton.jit
def _row(table, row, channels, channel, mask):
    """Load a row of a table for each token, in float64: (BLOCK, CHANNELS)."""
    at = table + row.to(tl.int64)[:, None] * channels + channel[None, :]
    return tl.load(at, mask=mask, other=0).to(tl.float64)


@triton.jit(do_not_specialize=UNSPECIALIZED)
def read_windows(
    x,
    left,
    right,
    out,
    sums,
    bases,
    lengths,
    ends,
    x_strides,
    left_strides,
    right_strides,
    tokens,
    context,
    sequences,
    heads,
    l_max,
    r_max,
    reach_left,
    reach_right,
    scale_bits,
    MAX_OFFSET: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
    CHANNELS: tl.constexpr,
    SLICES: tl.constexpr,
    HEAD_CHANNELS: tl.constexpr,
):
    """Read the windows of all tokens from the sums of their two ends; out is contiguous.

    A program owns BLOCK tokens and SLICES * CHANNELS channels of one head. A thread owns few
    channels of a slice and goes through all slices, so that it computes a window only once.
    """
    PARTS: tl.constexpr = (HEAD_CHANNELS + SLICES * CHANNELS - 1) // (SLICES * CHANNELS)
    # heads side by side read the same rows at about the same time
    program = tl.program_id(0)
    head = program // PARTS % heads
    batch, sequence, begin, rows, length, block = place_of(
        program // (heads * PARTS), tokens, lengths, ends, sequences, BLOCK
    )
    sides = (
        side_of(left, left_strides, batch, begin, head, l_max, reach_left),
        side_of(right, right_strides, batch, begin, head, r_max, reach_right),
    )
    own = block * BLOCK + tl.arange(0, BLOCK)
    exists = own < length
    to_left, to_right, is_nan = windows_of(sides, own, exists, MAX_OFFSET)
    # the sum before `after` minus the sum before `before`, each with a part of one token more
    end = length + context
    at = own + context
    before = at - to_left[0] - 1
    has_before = exists & (before >= 0)
    # the tables have no rows for tokens of the block that lie behind the end
    before = tl.minimum(tl.maximum(before, 0), end)
    after = tl.minimum(at + to_right[0] + 1, end)
    a_factor, is_a, a_neighbour, a_sign, has_a_neighbour = _edge(after, to_right[1], end)
    b_factor, is_b, b_neighbour, b_sign, has_b_neighbour = _edge(before, 1 - to_left[1], end)
    b_subtract = tl.where(has_before, -1.0, 0.0).to(tl.float64)

    channels = heads * HEAD_CHANNELS
    x += batch * x_strides[0] + begin.to(tl.int64) * x_strides[1]
    sums += first_row_of(sequence, begin, tokens + context, ends, GROUP) * channels
    bases += first_row_of(sequence, begin, tokens + context, ends, CHUNK) * channels
    out += (batch * tokens + begin) * channels
    scale = float64_of(scale_bits)
    for k in tl.static_range(SLICES):
        channel = program % PARTS * (SLICES * CHANNELS) + k * CHANNELS + tl.arange(0, CHANNELS)
        is_channel = (channel < HEAD_CHANNELS)[None, :]
        channel += head * HEAD_CHANNELS
        total = _row(sums, after // GROUP, channels, channel, is_channel)
        total += _row(bases, after // CHUNK, channels, channel, is_channel)
        found = _row(sums, before // GROUP, channels, channel, is_channel)
        found += _row(bases, before // CHUNK, channels, channel, is_channel)
        total = tl.fma(found, b_subtract[:, None], total)
        mask = (exists & is_a)[:, None] & is_channel
        found = _row(x, after, x_strides[1], channel, mask)
        total = tl.fma(found, a_factor[:, None], total)
        mask = (exists & has_a_neighbour)[:, None] & is_channel
        found = _row(x, a_neighbour, x_strides[1], channel, mask)
        total = tl.fma(found, a_sign[:, None], total)
        mask = (has_before & is_b)[:, None] & is_channel
        found = _row(x, before, x_strides[1], channel, mask)
        total = tl.fma(found, -b_factor[:, None], total)
        mask = (has_before & has_b_neighbour)[:, None] & is_channel
        found = _row(x, b_neighbour, x_strides[1], channel, mask)
        total = tl.fma(found, -b_sign[:, None], total)
        total = (total * scale).to(tl.float32)
        total = tl.where(exists[:, None], tl.where(is_nan[:, None], float("nan"), total), 0.0)
        is_row = (own < rows)[:, None] & is_channel
        tl.store(out + own.to(tl.int64)[:, None] * channels + channel[None, :], total, mask=is_row)
