"""The Triton kernels of the backward, whose work does not grow with the window.

A token's gradient is the sum over the windows that hold it. Going from token to token, this sum
changes only where a window begins or ends: each window is two events, and between them its gradient
counts whole. The events of a sequence and head are sorted by their place; signed sums of the events
run along the sorted list as sums of tokens do in the forward. Every gradient has one owner, which
adds in a fixed order, so nothing is atomic and results repeat bit for bit.

Event 2 i is the begin of token i's window and event 2 i + 1 its end. At the place of an event, the
gradient of token i counts times the event's weight; after it, it counts with the event's sign:

    begin    + part of the gradient at its place, which is above 0        then + the gradient
    end      + (part - 1) of the gradient at its place, below 0           then - the gradient
"""

import triton
import triton.language as tl

from talkconv.ops.gpu_windows import (
    UNSPECIALIZED,
    WILD,
    first_row_of,
    float64_of,
    load_rows,
    place_of,
    side_of,
    windows_of,
)

# the place of the event that ends a list: no token stands there
NEVER = tl.constexpr(2**31 - 1)


@triton.jit(do_not_specialize=UNSPECIALIZED)
def window_events(
    left,
    right,
    keys,
    weights,
    lengths,
    ends,
    left_strides,
    right_strides,
    tokens,
    sequences,
    heads,
    l_max,
    r_max,
    reach_left,
    reach_right,
    MAX_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Make the events of all windows: keys to sort them by, and weights: (B, H, 2 T) each.

    Keys grow with the place, from one before the first token to one after the last; packed, they
    grow from sequence to sequence too. A program owns BLOCK tokens of one head.
    """
    program = tl.program_id(0)
    head = program % heads
    batch, sequence, begin, rows, length, block = place_of(
        program // heads, tokens, lengths, ends, sequences, BLOCK
    )
    sides = (
        side_of(left, left_strides, batch, begin, head, l_max, reach_left),
        side_of(right, right_strides, batch, begin, head, r_max, reach_right),
    )
    own = block * BLOCK + tl.arange(0, BLOCK)
    exists = own < length
    to_left, to_right, _ = windows_of(sides, own, exists, MAX_OFFSET)
    # events of tokens that do not exist come after all others
    before = tl.where(exists, tl.maximum(own - to_left[0] - 1, -1), rows)
    after = tl.where(exists, tl.minimum(own + to_right[0] + 1, length), rows)
    first_key = begin * 0
    if ends is not None:
        first_key = begin + 2 * sequence
    at = (batch * heads + head) * 2 * tokens + 2 * (begin + own)
    is_row = own < rows
    tl.store(keys + at, first_key + before + 1, mask=is_row)
    tl.store(keys + at + 1, first_key + after + 1, mask=is_row)
    tl.store(weights + at, to_left[1].to(tl.float32), mask=is_row)
    tl.store(weights + at + 1, (to_right[1] - 1).to(tl.float32), mask=is_row)


@triton.jit
def _list_of(events, batch, sequence, begin, tokens, sequences, heads, head, ends):
    """Return a pointer to the sorted events of one sequence and head.

    An event is three numbers: its place, its token and the bits of its weight. The list of each
    sequence has one event more, which ends it.
    """
    if ends is None:
        row = (batch * heads + head) * (2 * tokens + 1)
    else:
        row = head.to(tl.int64) * (2 * tokens + sequences) + 2 * begin + sequence
    return events + 3 * row


@triton.jit(do_not_specialize=UNSPECIALIZED)
def event_sums(
    grad_out,
    keys,
    order,
    weights,
    events,
    totals,
    lengths,
    event_ends,
    grad_out_strides,
    tokens,
    sequences,
    heads,
    head_channels,
    CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Sum the gradients of every CHUNK sorted events with their signs: (rows, channels) in float64.

    This also makes the list of sorted events that walk_events() reads. A program owns up to CHUNKS
    chunks and CHANNELS channels of one head.
    """
    program = tl.program_id(0)
    slices = tl.cdiv(head_channels, CHANNELS)
    channel = program % slices * CHANNELS + tl.arange(0, CHANNELS)
    is_channel = channel < head_channels
    head = program // slices % heads
    channel += head * head_channels
    # begin and rows count events here, which are two for each token
    batch, sequence, begin, rows, length, block = place_of(
        program // (slices * heads), 2 * tokens, lengths, event_ends, sequences, CHUNKS * CHUNK
    )
    lists = (batch * heads + head) * 2 * tokens
    keys += lists + begin
    order += lists + begin
    weights += lists
    begin_token = begin // 2
    events = _list_of(
        events, batch, sequence, begin_token, tokens, sequences, heads, head, event_ends
    )
    first_key = sequence * 0 + 1
    if event_ends is not None:
        first_key += begin_token + 2 * sequence
    grad_out += batch * grad_out_strides[0]
    channels = heads * head_channels
    row = first_row_of(sequence, begin, 2 * tokens, event_ends, CHUNK) + block * CHUNKS
    totals += row * channels + channel
    first = block * CHUNKS * CHUNK
    for start in range(first, tl.minimum(first + CHUNKS * CHUNK, rows + 1), CHUNK):
        k = start + tl.arange(0, CHUNK)
        is_event = k < rows
        event = tl.load(order + k, mask=is_event, other=0)
        token = (event // 2).to(tl.int32)
        if program % slices == 0:
            place = tl.load(keys + k, mask=is_event, other=0) - first_key
            weight = tl.load(weights + event, mask=is_event, other=0)
            tl.store(events + 3 * k, tl.where(is_event, place, NEVER), mask=k <= rows)
            tl.store(events + 3 * k + 1, token, mask=is_event)
            tl.store(events + 3 * k + 2, weight.to(tl.int32, bitcast=True), mask=is_event)
        exists = is_event & (token < begin_token + length)
        grads = load_rows(grad_out, grad_out_strides[1], token, exists, channel, is_channel)
        sign = tl.where(event % 2 == 0, 1.0, -1.0)
        grads = grads.to(tl.float32) * sign[:, None]
        grads = tl.where(tl.abs(grads) < WILD, grads, 0.0)
        tl.store(totals, tl.sum(grads.to(tl.float64), axis=0), mask=is_channel)
        totals += channels


@triton.jit
def _first_event(events, place, count):
    """Return the first of the sorted events that does not stand before a place."""
    low = place * 0
    high = low + count
    while low < high:
        middle = (low + high) // 2
        is_before = tl.load(events + 3 * middle.to(tl.int64)) < place
        low = tl.where(is_before, middle + 1, low)
        high = tl.where(is_before, high, middle)
    return low


@triton.jit
def _load_event(events):
    """Return the place, the token, the weight and the sign of an event."""
    weight = tl.load(events + 2).to(tl.float32, bitcast=True)
    sign = tl.where(weight < 0, -1.0, 1.0)
    return tl.load(events), tl.load(events + 1), weight.to(tl.float64), sign.to(tl.float64)


@triton.jit(do_not_specialize=UNSPECIALIZED)
def walk_events(
    grad_out,
    grad_x,
    events,
    bases,
    lengths,
    ends,
    grad_out_strides,
    tokens,
    sequences,
    heads,
    head_channels,
    scale_bits,
    BLOCK: tl.constexpr,
    CHUNK: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Go through the sorted events of BLOCK tokens and write their gradients.

    `open` is the sum of the gradients whose windows began and did not end before a token. grad_x is
    contiguous. A program owns BLOCK tokens and CHANNELS channels of one head.
    """
    program = tl.program_id(0)
    slices = tl.cdiv(head_channels, CHANNELS)
    channel = program % slices * CHANNELS + tl.arange(0, CHANNELS)
    is_channel = channel < head_channels
    head = program // slices % heads
    channel += head * head_channels
    batch, sequence, begin, rows, length, block = place_of(
        program // (slices * heads), tokens, lengths, ends, sequences, BLOCK
    )
    channels = heads * head_channels
    first = block * BLOCK
    stride = grad_out_strides[1]
    grad_out += batch * grad_out_strides[0] + channel
    grad_x += (batch * tokens + begin + first) * channels + channel
    events = _list_of(events, batch, sequence, begin, tokens, sequences, heads, head, ends)
    count = tl.minimum(tl.maximum(length - first, 0), BLOCK)
    open = tl.zeros((CHANNELS,), tl.float64)
    if count > 0:
        chunk = _first_event(events, first, 2 * rows) // CHUNK
        row = batch * (2 * tokens // CHUNK + 1)
        if ends is not None:
            row = (2 * begin // CHUNK + sequence).to(tl.int64)
        open = tl.load(bases + (row + chunk) * channels + channel, mask=is_channel, other=0)
        events += 3 * CHUNK * chunk
    place, token, weight, sign = _load_event(events)
    while place < tl.where(count > 0, first, -2):
        at = grad_out + token.to(tl.int64) * stride
        grad = tl.load(at, mask=is_channel, other=0).to(tl.float32)
        # a wild gradient whose window has ended again must leave no trace
        grad = tl.where(tl.abs(grad) < WILD, grad, 0.0)
        open = tl.fma(grad.to(tl.float64), sign, open)
        events += 3
        place, token, weight, sign = _load_event(events)
    scale = float64_of(scale_bits)
    for j in range(count):
        total = open
        while place == first + j:
            at = grad_out + token.to(tl.int64) * stride
            grad = tl.load(at, mask=is_channel, other=0).to(tl.float64)
            total = tl.fma(grad, weight, total)
            open = tl.fma(grad, sign, open)
            events += 3
            place, token, weight, sign = _load_event(events)
        tl.store(grad_x, (total * scale).to(tl.float32), mask=is_channel)
        grad_x += channels
    for _ in range(count, tl.minimum(rows - first, BLOCK)):
        tl.store(grad_x, tl.zeros((CHANNELS,), tl.float32), mask=is_channel)
        grad_x += channels
