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
def _block_of_packed(slot, tokens, cu_seqlens, sequences, BLOCK: tl.constexpr):
    # Sequence s takes the slots from cu_seqlens[s] // BLOCK + s on: never fewer than it has blocks,
    # and known without a table or a look at the lengths from the host. Spare slots own no token.
    low = slot * 0
    high = low + sequences - 1
    while low < high:
        middle = (low + high + 1) // 2
        is_past = tl.load(cu_seqlens + middle).to(tl.int64) // BLOCK + middle > slot
        low = tl.where(is_past, low, middle)
        high = tl.where(is_past, middle - 1, high)
    # wrong cu_seqlens cannot be reported from here; they must not lead outside the tensors either
    begin = tl.load(cu_seqlens + low).to(tl.int64)
    begin = tl.minimum(tl.maximum(begin, 0), tokens)
    end = tl.load(cu_seqlens + low + 1).to(tl.int64)
    end = tl.minimum(tl.maximum(end, begin), tokens)
    block = tl.maximum(slot - begin // BLOCK - low, 0)
    return slot * 0, begin, end - begin, end - begin, block


@triton.jit
def _own_block(slot, tokens, lengths, cu_seqlens, sequences, BLOCK: tl.constexpr):
    """Where a program works: (row of the batch, first row in time, rows, existing rows, block)."""
    if cu_seqlens is None:
        place = _block_of_padded(slot, tokens, lengths, BLOCK)
    else:
        place = _block_of_packed(slot, tokens, cu_seqlens, sequences, BLOCK)
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
    offset = (token * 0).to(SUM)
    if offsets is not None:
        offset = tl.load(offsets + token * stride, mask=exists, other=0)
        if offset.dtype != tl.float64:
            offset = offset.to(SUM)
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
def _add_product(weights, rows, total):
    """total + weights @ rows: (BLOCK, TILE) @ (TILE, CHANNELS).

    A tile of one token is added by itself. Larger ones go to the tensor cores in pieces whose
    products are exact; products too small for the last bit of the result are left out.
    """
    if rows.shape[0] == 1:
        total += tl.where(weights != 0, weights * rows.to(total.dtype), 0.0)
    elif rows.dtype == tl.float32:
        w_high, w_middle, w_low = _split(weights, tl.bfloat16)
        high, middle, low = _split(rows, tl.bfloat16)
        total = tl.dot(w_low, high, total)
        total = tl.dot(w_middle, middle, total)
        total = tl.dot(w_high, low, total)
        total = tl.dot(w_middle, high, total)
        total = tl.dot(w_high, middle, total)
        total = tl.dot(w_high, high, total)
    else:
        w_high, w_middle, _ = _split(weights, rows.dtype)
        total = tl.dot(w_middle, rows, total)
        total = tl.dot(w_high, rows, total)
    return total


@triton.jit
def _load_rows(x, token_stride, token, exists, channel, is_channel):
    """Rows of x by token, 0 where there is none: (tokens, CHANNELS)."""
    return tl.load(
        x + token[:, None] * token_stride + channel[None, :],
        mask=exists[:, None] & is_channel[None, :],
        other=0,
    )


@triton.jit
def _of_kind(rows, kind):
    """Kind 0: the finite elements; 1: a 1 for +infinity and NaN; 2: a 1 for -infinity and NaN."""
    values = rows.to(tl.float32)
    is_finite = values - values == 0
    is_special = ~is_finite & tl.where(kind == 1, ~(values < 0), ~(values > 0))
    finite = tl.where(is_finite, values, 0.0)
    return tl.where(kind == 0, finite, is_special.to(tl.float32)).to(rows.dtype)


@triton.jit
def _walk(
    x,
    stride,
    span,
    sides,
    own,
    channel,
    is_channel,
    kind,
    TRANSPOSED: tl.constexpr,
    MAX_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    SUM: tl.constexpr,
):
    """The walk over all tiles: (BLOCK, CHANNELS).

    Sums the rows of x in the windows of the block, `own`; TRANSPOSED, what every token of the block
    weighs in the windows of the rows.
    """
    origin, lowest, highest = span
    total = tl.zeros((BLOCK, channel.shape[0]), SUM)
    block = tl.arange(0, BLOCK)
    for start in range(lowest, highest, TILE):
        token = (start + tl.arange(0, TILE)).to(tl.int64)
        exists = token < highest
        rows = _load_rows(x, stride, token, exists, channel, is_channel)
        at = (token - origin).to(tl.int32)
        if TRANSPOSED:
            weights = _weights(block, at, _windows(sides, token, exists, MAX_OFFSET, SUM))
        else:
            weights = tl.trans(_weights(at, block, own))
        if kind is not None:
            rows = _of_kind(rows, kind)
            # NaN weights count only once, among the finite
            weights = tl.where(kind == 0, weights, (weights != 0).to(SUM))
        total = _add_product(weights, rows, total)
    return total


@triton.jit
def _sum(
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
    SUM: tl.constexpr,
):
    """The walk, with NaN and infinities kept inside the windows that hold them: 0 * NaN is NaN, so
    a product carries one to the whole block. The few blocks that have one are walked again by kind.
    """
    total = _walk(
        x, stride, span, sides, own, channel, is_channel,
        None, TRANSPOSED, MAX_OFFSET, BLOCK, TILE, SUM,
    )  # fmt: skip
    if TILE > 1:
        has_special = tl.max(tl.max((total - total != 0).to(tl.int32), axis=1), axis=0) != 0
        if has_special:
            for kind in range(3):
                found = _walk(
                    x, stride, span, sides, own, channel, is_channel,
                    kind, TRANSPOSED, MAX_OFFSET, BLOCK, TILE, SUM,
                )  # fmt: skip
                special = tl.where(kind == 1, float("inf"), float("-inf"))
                special = tl.where(found > 0, total + special, total)
                total = tl.where(kind == 0, found, special)
    return total


@triton.jit(do_not_specialize=UNSPECIALIZED)
def forward(
    x,
    left,
    right,
    out,
    lengths,
    cu_seqlens,
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
        program // (heads * slices), tokens, lengths, cu_seqlens, sequences, BLOCK
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
        False, MAX_OFFSET, BLOCK, TILE, SUM,
    )  # fmt: skip
    row = batch * tokens + begin + own
    tl.store(
        out + row[:, None] * (heads * head_channels) + channel[None, :],
        total * (1.0 / divisor.to(tl.float64)).to(SUM),
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
    cu_seqlens,
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
        program // heads, tokens, lengths, cu_seqlens, sequences, BLOCK
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
    for start in range(0, head_channels, CHANNELS):
        channel = start + tl.arange(0, CHANNELS)
        is_channel = channel < head_channels
        channel += head * head_channels
        total = _sum(
            grad_out, grad_out_strides[1], span, sides, windows, channel, is_channel,
            True, MAX_OFFSET, BLOCK, TILE, SUM,
        )  # fmt: skip
        tl.store(
            grad_x + row[:, None] * (heads * head_channels) + channel[None, :],
            tl.where(exists[:, None], total * (1.0 / divisor.to(tl.float64)).to(SUM), 0.0),
            mask=is_row[:, None] & is_channel[None, :],
        )
        # an edge that moves takes in more of the token it stands on
        grad = _load_rows(grad_out, grad_out_strides[1], own, exists, channel, is_channel)
        edge = _load_rows(x, x_strides[1], before, left_moves, channel, is_channel)
        left_dot += tl.sum(grad.to(tl.float64) * edge.to(tl.float64), axis=1)
        edge = _load_rows(x, x_strides[1], after, right_moves, channel, is_channel)
        right_dot += tl.sum(grad.to(tl.float64) * edge.to(tl.float64), axis=1)

    left_dot = tl.where(left_moves, left_dot * l_max / divisor, 0.0)
    _store_offset_grads(grad_left + row * heads + head, left_dot, is_nan, is_row)
    right_dot = tl.where(right_moves, right_dot * r_max / divisor, 0.0)
    _store_offset_grads(grad_right + row * heads + head, right_dot, is_nan, is_row)
