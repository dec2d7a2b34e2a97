"""The Triton kernels: one for the outputs, one for all gradients. Only here ops need triton.

A program owns a block of tokens of one sequence and head, and walks over the tiles of tokens that
its windows touch. Inside a tile the windows are a small matrix of weights, formed in registers and
multiplied with the tile: only what a window holds is ever added, so nothing cancels, as differences
of running sums would, and the gradient is the same walk with the weights transposed, without
atomics. Positions are integers relative to the block; addresses have 64 bits.

A `side` of the windows is (offsets or None, stride between tokens, most tokens, reach), its pointer
already at the sequence and head; `sides` are left and right. A `span` is (origin, lowest, highest):
where the block begins and the tokens to walk over, in tokens of the sequence.
"""

import triton
import triton.language as tl

# these change from call to call and speed nothing up: a kernel per value would only compile longer
UNSPECIALIZED = (
    "tokens",
    "context",
    "sequences",
    "heads",
    "l_max",
    "r_max",
    "reach_left",
    "reach_right",
    "divisor",
)


# Elements from here on, infinities and NaN are wild: they are left out of the fast sums and added
# one by one. Below it, rounding in float64 stays under 1e-6 even next to the largest element, and
# bfloat16 pieces do not overflow.
WILD = tl.constexpr(2.0**31)


@triton.jit
def _block_of_padded(slot, tokens, lengths, BLOCK: tl.constexpr):
    blocks = tl.cdiv(tokens, BLOCK)
    sequence = slot // blocks
    length = tokens.to(tl.int64)
    if lengths is not None:
        length = tl.load(lengths + sequence).to(tl.int64)
        length = tl.minimum(tl.maximum(length, 0), tokens)
    return sequence, slot * 0, tokens.to(tl.int64), length, slot % blocks


@triton.jit
def _block_of_packed(slot, ends, sequences, BLOCK: tl.constexpr):
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
    return slot * 0, begin, rows, length, slot - begin // BLOCK - low


@triton.jit
def _own_block(slot, tokens, lengths, ends, sequences, BLOCK: tl.constexpr):
    """Where a program works: (row of the batch, first row in time, rows, existing rows, block)."""
    if ends is None:
        place = _block_of_padded(slot, tokens, lengths, BLOCK)
    else:
        place = _block_of_packed(slot, ends, sequences, BLOCK)
    return place


@triton.jit
def _side(offsets, strides, batch, begin, head, most_tokens, reach):
    """One side of the windows of one sequence and head, as described above."""
    if offsets is not None:
        offsets += batch * strides[0] + begin * strides[1] + head
    return offsets, strides[1], most_tokens, reach


@triton.jit
def _reach(side, token, exists, MAX_OFFSET: tl.constexpr, SUM: tl.constexpr):
    """How far windows reach to one side: whole tokens, the part of one more, and whether that part
    moves with the offset (neither clamped nor at an integer); last, whether the offset is NaN."""
    offsets, stride, most_tokens, limit = side
    # in float64 the product is exact for all narrower offsets, as in the compiled CPU kernel
    offset = (token * 0).to(tl.float64)
    if offsets is not None:
        offset = tl.load(offsets + token * stride, mask=exists, other=0).to(tl.float64)
    clamped = tl.where(offset > 0, tl.where(offset < MAX_OFFSET, offset, MAX_OFFSET), 0.0)
    reach = clamped * most_tokens
    # no token lies beyond the limit, and the conversion stays defined where the product is huge
    is_near = reach < limit
    whole = tl.where(is_near, reach, 0.0).to(tl.int32)
    part = tl.where(is_near, reach - whole, 0.0)
    moves = (part > 0) & (offset == clamped)
    return tl.where(is_near, whole, limit), part.to(SUM), moves, offset != offset


@triton.jit
def _windows(sides, token, exists, MAX_OFFSET: tl.constexpr, SUM: tl.constexpr):
    """(whole, part, moves) to the left, the same to the right, and is_nan."""
    left_whole, left_part, left_moves, left_nan = _reach(sides[0], token, exists, MAX_OFFSET, SUM)
    right_whole, right_part, right_moves, right_nan = _reach(
        sides[1], token, exists, MAX_OFFSET, SUM
    )
    # an offset that is NaN takes the whole window: the token is left alone with its NaN
    is_nan = left_nan | right_nan
    left = tl.where(is_nan, 0, left_whole), tl.where(is_nan, 0.0, left_part), left_moves & ~is_nan
    right = (
        tl.where(is_nan, 0, right_whole),
        tl.where(is_nan, 0.0, right_part),
        right_moves & ~is_nan,
    )
    return left, right, is_nan


@triton.jit
def _weights(token, middle, windows):
    """What each token (rows) weighs in the window around each middle (columns): 1 if the window
    holds it whole, a part for the two at the edges, 0 outside."""
    left, right, is_nan = windows
    token = token[:, None]
    first = (middle - left[0])[None, :]
    last = (middle + right[0])[None, :]
    weights = tl.where(token == first - 1, left[1][None, :], 0.0)
    weights = tl.where(token == last + 1, right[1][None, :], weights)
    one = tl.where(is_nan, float("nan"), 1.0)[None, :]
    return tl.where((token >= first) & (token <= last), one, weights)


@triton.jit
def _split(values, dtype: tl.constexpr):
    """Three pieces of half precision that add up to the values: 3 x 8 bits are all of float32."""
    high = values.to(dtype)
    rest = values - high.to(tl.float32)
    middle = rest.to(dtype)
    low = (rest - middle.to(tl.float32)).to(dtype)
    return high, middle, low


@triton.jit
def _product(weights, rows):
    """weights @ rows: (BLOCK, TILE) @ (TILE, CHANNELS), from the tensor cores in float32.

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


@triton.jit
def _load_rows(x, token_stride, token, exists, channel, is_channel):
    """Rows of x by token, 0 where there is none: (tokens, CHANNELS)."""
    return tl.load(
        x + token[:, None] * token_stride + channel[None, :],
        mask=exists[:, None] & is_channel[None, :],
        other=0,
    )


@triton.jit
def _walk_by_products(
    x,
    stride,
    span,
    sides,
    own,
    channel,
    is_channel,
    TRANSPOSED: tl.constexpr,
    MAX_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):
    """Sum the rows of x in the windows of the block, `own`: (BLOCK, CHANNELS).

    TRANSPOSED, sum the rows by what every token of the block weighs in their windows. Wild elements
    are left out; the second result tells whether there was one.
    """
    origin, lowest, highest = span
    total = tl.zeros((BLOCK, channel.shape[0]), tl.float32)
    wild = tl.zeros((TILE, channel.shape[0]), tl.int1)
    block = tl.arange(0, BLOCK)
    for start in range(lowest, highest, TILE):
        token = (start + tl.arange(0, TILE)).to(tl.int64)
        exists = token < highest
        rows = _load_rows(x, stride, token, exists, channel, is_channel)
        is_tame = tl.abs(rows.to(tl.float32)) < WILD
        wild |= ~is_tame
        rows = tl.where(is_tame, rows, 0.0).to(rows.dtype)
        at = (token - origin).to(tl.int32)
        if TRANSPOSED:
            windows = _windows(sides, token, exists, MAX_OFFSET, tl.float32)
            weights = _weights(block, at, windows)
        else:
            weights = tl.trans(_weights(at, block, own))
        # Each product starts from zero: tensor cores round toward zero, and a sum that went through
        # their accumulator from tile to tile would drift with the window.
        total += _product(weights, rows)
    return total, tl.max(tl.max(wild.to(tl.int32), axis=1), axis=0) != 0


@triton.jit
def _walk_one_by_one(
    x,
    stride,
    span,
    sides,
    own,
    channel,
    is_channel,
    scale,
    TRANSPOSED: tl.constexpr,
    MAX_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
    SUM: tl.constexpr,
):
    """Sum as _walk_by_products() does, times scale, one token after the other in float64.

    An element is added only to the windows that hold it, so NaN, infinities and elements near the
    largest number change no other result. The weight is scaled first: two of the largest numbers
    have a mean, although they have no sum.
    """
    origin, lowest, highest = span
    total = tl.zeros((BLOCK, channel.shape[0]), tl.float64)
    block = tl.arange(0, BLOCK)
    for start in range(lowest, highest):
        token = (start + tl.arange(0, 1)).to(tl.int64)
        exists = token < highest
        row = _load_rows(x, stride, token, exists, channel, is_channel).to(tl.float64)
        at = (token - origin).to(tl.int32)
        if TRANSPOSED:
            windows = _windows(sides, token, exists, MAX_OFFSET, SUM)
            weights = _weights(block, at, windows)
        else:
            weights = tl.trans(_weights(at, block, own))
        weights = weights.to(tl.float64) * scale
        total += tl.where(weights != 0, weights * row, 0.0)
    return total.to(SUM)


@triton.jit
def _sum(
    x,
    stride,
    span,
    sides,
    own,
    channel,
    is_channel,
    scale,
    TRANSPOSED: tl.constexpr,
    MAX_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    SUM: tl.constexpr,
):
    """Return the scaled sums by products, or one by one where a product could not hold them.

    0 * infinity is NaN, so a product would carry one infinity to the whole block.
    """
    if tl.float64 == SUM:
        total = _walk_one_by_one(
            x, stride, span, sides, own, channel, is_channel, scale,
            TRANSPOSED, MAX_OFFSET, BLOCK, SUM,
        )  # fmt: skip
    else:
        total, is_wild = _walk_by_products(
            x, stride, span, sides, own, channel, is_channel, TRANSPOSED, MAX_OFFSET, BLOCK, TILE
        )
        total *= scale.to(SUM)
        if is_wild:
            total = _walk_one_by_one(
                x, stride, span, sides, own, channel, is_channel, scale,
                TRANSPOSED, MAX_OFFSET, BLOCK, SUM,
            )  # fmt: skip
    return total


@triton.jit(do_not_specialize=UNSPECIALIZED)
def forward(
    x,
    left,
    right,
    out,
    lengths,
    ends,
    x_strides,
    left_strides,
    right_strides,
    tokens,
    context,
    sequences,
    heads,
    head_channels,
    l_max,
    r_max,
    reach_left,
    reach_right,
    divisor,
    MAX_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """out from x, which has `context` rows more in front of each sequence; out is contiguous.

    A program owns BLOCK tokens and CHANNELS channels of one head.
    """
    # heads side by side read the same rows at about the same time
    program = tl.program_id(0).to(tl.int64)
    slices = tl.cdiv(head_channels, CHANNELS)
    head = program // slices % heads
    channel = program % slices * CHANNELS + tl.arange(0, CHANNELS)
    is_channel = channel < head_channels
    channel += head * head_channels
    batch, begin, rows, length, block = _own_block(
        program // (heads * slices), tokens, lengths, ends, sequences, BLOCK
    )
    x += batch * x_strides[0] + begin * x_strides[1]
    sides = (
        _side(left, left_strides, batch, begin, head, l_max, reach_left),
        _side(right, right_strides, batch, begin, head, r_max, reach_right),
    )
    SUM: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    own = block * BLOCK + tl.arange(0, BLOCK)
    windows = _windows(sides, own, own < length, MAX_OFFSET, SUM)

    length += context
    origin = context + block * BLOCK
    lowest = tl.maximum(origin - reach_left, 0)
    highest = tl.where(origin < length, tl.minimum(origin + BLOCK + reach_right, length), lowest)
    total = _sum(
        x, x_strides[1], (origin, lowest, highest), sides, windows, channel, is_channel,
        1.0 / divisor.to(tl.float64), False, MAX_OFFSET, BLOCK, TILE, SUM,
    )  # fmt: skip
    row = batch * tokens + begin + own
    tl.store(
        out + row[:, None] * (heads * head_channels) + channel[None, :],
        total,
        mask=(own < rows)[:, None] & is_channel[None, :],
    )


@triton.jit
def _store_offset_grads(grads, values, is_nan, is_row):
    values = tl.where(is_nan, float("nan"), values)
    # no processor rounds float64 to half precision in one step
    if grads.dtype.element_ty != tl.float64:
        values = values.to(tl.float32)
    tl.store(grads, values, mask=is_row)


@triton.jit(do_not_specialize=UNSPECIALIZED)
def backward(
    grad_out,
    x,
    left,
    right,
    grad_x,
    grad_left,
    grad_right,
    lengths,
    ends,
    grad_out_strides,
    x_strides,
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
    divisor,
    MAX_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """All gradients, each contiguous. A program owns those of BLOCK tokens of one head."""
    program = tl.program_id(0).to(tl.int64)
    head = program % heads
    batch, begin, rows, length, block = _own_block(
        program // heads, tokens, lengths, ends, sequences, BLOCK
    )
    grad_out += batch * grad_out_strides[0] + begin * grad_out_strides[1]
    x += batch * x_strides[0] + begin * x_strides[1]
    sides = (
        _side(left, left_strides, batch, begin, head, l_max, reach_left),
        _side(right, right_strides, batch, begin, head, r_max, reach_right),
    )

    origin = block * BLOCK
    own = origin + tl.arange(0, BLOCK)
    exists = own < length
    row = batch * tokens + begin + own
    is_row = own < rows
    SUM: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    windows = _windows(sides, own, exists, MAX_OFFSET, SUM)
    to_left, to_right, is_nan = windows
    before = own - to_left[0] - 1
    after = own + to_right[0] + 1
    left_moves = to_left[2] & (before >= 0)
    right_moves = to_right[2] & (after < length)

    # the other way round: windows before the block reach into it by their right side
    lowest = tl.maximum(origin - reach_right, 0)
    highest = tl.where(origin < length, tl.minimum(origin + BLOCK + reach_left, length), lowest)
    span = (origin, lowest, highest)
    # a sum over a head's channels cancels where a sum over a window does not: float64
    left_dot = tl.zeros((BLOCK,), tl.float64)
    right_dot = tl.zeros((BLOCK,), tl.float64)
    scale = 1.0 / divisor.to(tl.float64)
    for start in range(0, head_channels, CHANNELS):
        channel = start + tl.arange(0, CHANNELS)
        is_channel = channel < head_channels
        channel += head * head_channels
        total = _sum(
            grad_out, grad_out_strides[1], span, sides, windows, channel, is_channel,
            scale, True, MAX_OFFSET, BLOCK, TILE, SUM,
        )  # fmt: skip
        tl.store(
            grad_x + row[:, None] * (heads * head_channels) + channel[None, :],
            tl.where(exists[:, None], total, 0.0),
            mask=is_row[:, None] & is_channel[None, :],
        )
        # an edge that moves takes in more of the token it stands on
        grad = _load_rows(grad_out, grad_out_strides[1], own, exists, channel, is_channel)
        grad = grad.to(tl.float64) * scale
        edge = _load_rows(x, x_strides[1], before, left_moves, channel, is_channel)
        left_dot += tl.sum(grad * edge.to(tl.float64), axis=1)
        edge = _load_rows(x, x_strides[1], after, right_moves, channel, is_channel)
        right_dot += tl.sum(grad * edge.to(tl.float64), axis=1)

    left_dot = tl.where(left_moves, left_dot * l_max, 0.0)
    _store_offset_grads(grad_left + row * heads + head, left_dot, is_nan, is_row)
    right_dot = tl.where(right_moves, right_dot * r_max, 0.0)
    _store_offset_grads(grad_right + row * heads + head, right_dot, is_nan, is_row)
