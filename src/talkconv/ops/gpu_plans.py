"""Plans calls of the Triton kernels: which of them run, how many programs, with which arguments.

Nothing here waits for the GPU or reads from it, so that calls can be captured in CUDA graphs; the
numbers in `lengths` and `cu_seqlens` are clamped to the tensors instead of checked. The tensors may
be on the meta device: a plan can be compiled where no GPU is present.
"""

import math
import struct
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from talkconv.ops import gpu_backward, gpu_dense, gpu_direct, gpu_forward, gpu_offsets
from talkconv.ops.gpu_sequences import Sequences
from talkconv.ops.gpu_sizes import Sizes, sizes_of
from talkconv.ops.gpu_steps import Launch, Sort
from talkconv.ops.windows import scale_of

# Decoding steps of up to so many tokens are summed directly: running sums would need three kernels.
FEW_TOKENS = 32

# The backward of windows of fewer tokens is by products with their weights, without a sort. By the
# estimates of `talkconv bench kernels` that pays up to 55 tokens on an A100 and 120 on an H100.
SHORT_WINDOW = 64


@dataclass(frozen=True)
class Windows:
    """The offsets, and the settings that turn them into windows."""

    left: Tensor
    right: Tensor
    l_max: int
    r_max: int
    max_offset: float
    normalize: bool


def forward(
    x: Tensor,
    windows: Windows,
    out: Tensor,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    context: int = 0,
) -> list[Launch]:
    """Plan the outputs. x has `context` rows more in front of each sequence than out."""
    sequences = Sequences.of(out, lengths, cu_seqlens, context)
    if x.dtype == torch.float64 or (context and sequences.tokens <= FEW_TOKENS):
        return [_direct(x, windows, out, sequences)]
    C = x.shape[-1]
    sizes = sizes_of(x.dtype, C // windows.left.shape[-1])
    slabs = math.ceil(C / sizes.slab)
    sums = x.new_empty((sequences.rows(4), C), dtype=torch.float64)
    totals, bases = x.new_empty((2, sequences.rows(sizes.chunk), C), dtype=torch.float64)
    wild = x.new_empty((sequences.rows(sizes.chunk), slabs), dtype=torch.int8)
    of_x = dict(sequences.arguments(), tokens=sequences.tokens + context)
    chunks = Launch(
        gpu_forward.chunk_sums,
        wild.numel(),
        dict(
            **_rows("x", x),
            sums=sums,
            totals=totals,
            wild=wild,
            channels=C,
            CHUNK=sizes.chunk,
            CHANNELS=sizes.slab,
            STEP=sizes.step,
            **of_x,
        ),
    )
    read = Launch(
        gpu_forward.read_windows,
        sequences.slots(sizes.block) * _programs_of_heads(x, windows, sizes.span),
        dict(
            **_rows("x", x),
            out=out,
            sums=sums,
            bases=bases,
            context=context,
            CHUNK=sizes.chunk,
            BLOCK=sizes.block,
            CHANNELS=sizes.channels,
            SLICES=sizes.slices,
            HEAD_CHANNELS=C // windows.left.shape[-1],
            **_window_arguments(x, windows),
            **sequences.arguments(),
        ),
    )
    scan = _scan(totals, bases, sequences, sizes.chunk)
    repair = _direct(x, windows, out, sequences, wild, (sizes.chunk, sizes.slab))
    return [chunks, scan, read, repair]


def backward(
    grad_out: Tensor,
    x: Tensor,
    windows: Windows,
    grads: tuple[Tensor, Tensor, Tensor],
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> list[Launch | Sort]:
    """Plan the gradients to x, left and right."""
    sequences = Sequences.of(x, lengths, cu_seqlens)
    C, H = x.shape[-1], windows.left.shape[-1]
    sizes = sizes_of(x.dtype, C // H)
    wild = x.new_empty((sequences.slots(sizes.block), H), dtype=torch.int8)
    offsets = Launch(
        gpu_offsets.offset_grads,
        wild.numel(),
        dict(
            **_rows("grad_out", grad_out),
            **_rows("x", x),
            grad_left=grads[1],
            grad_right=grads[2],
            wild=wild,
            BLOCK=sizes.block,
            CHANNELS=sizes.channels,
            SLICES=sizes.slices,
            HEAD_CHANNELS=C // H,
            **_window_arguments(x, windows),
            **sequences.arguments(),
        ),
        # an element of float64 takes two registers
        warps=8 if x.dtype == torch.float64 else 4,
    )
    if x.dtype == torch.float64:
        return [offsets, _direct(grad_out, windows, grads[0], sequences, transposed=True)]
    repair = _direct(
        grad_out, windows, grads[0], sequences, wild, (sizes.block, C // H), transposed=True
    )
    steps: list[Launch | Sort]
    if (windows.l_max + windows.r_max) * windows.max_offset < SHORT_WINDOW:
        steps = [_dense(grad_out, windows, grads[0], sequences, sizes)]
    else:
        steps = _by_events(grad_out, windows, grads[0], sequences, sizes)
    return [offsets, *steps, repair]


def _dense(
    grad_out: Tensor, windows: Windows, grad_x: Tensor, sequences: Sequences, sizes: Sizes
) -> Launch:
    return Launch(
        gpu_dense.dense_grad_x,
        sequences.slots(sizes.dense_block)
        * _programs_of_heads(grad_out, windows, sizes.dense_channels),
        dict(
            **_rows("grad_out", grad_out),
            grad_x=grad_x,
            head_channels=grad_x.shape[-1] // windows.left.shape[-1],
            BLOCK=sizes.dense_block,
            TILE=sizes.dense_tile,
            CHANNELS=sizes.dense_channels,
            **_window_arguments(grad_out, windows),
            **sequences.arguments(),
        ),
        warps=sizes.dense_block // 16,
        # with fewer stages the loop would wait for each load
        stages=3,
    )


def _by_events(
    grad_out: Tensor, windows: Windows, grad_x: Tensor, sequences: Sequences, sizes: Sizes
) -> list[Launch | Sort]:
    """Plan grad_x by the begins and ends of windows, sorted by their places."""
    C, H = grad_x.shape[-1], windows.left.shape[-1]
    batch = grad_x.shape[0] if sequences.ends is None else 1
    lists = (batch, H, 2 * sequences.tokens)
    weights = grad_x.new_empty(lists, dtype=torch.float32)
    sort = Sort.of(grad_x.new_empty(lists, dtype=torch.int32))
    extra = batch if sequences.ends is None else sequences.count
    events = grad_x.new_empty((H * (2 * batch * sequences.tokens + extra), 3), dtype=torch.int32)
    # a table with a row for every few events is one of twice as many tokens
    doubled = sequences.doubled()
    totals, bases = grad_x.new_empty((2, doubled.rows(sizes.event_chunk), C), dtype=torch.float64)
    of_gradients = dict(
        **_rows("grad_out", grad_out),
        events=events,
        heads=H,
        head_channels=C // H,
        CHUNK=sizes.event_chunk,
        CHANNELS=sizes.event_channels,
    )
    of_windows = _window_arguments(grad_out, windows)
    scale_bits = of_windows.pop("scale_bits")
    slices = _programs_of_heads(grad_out, windows, sizes.event_channels)
    return [
        Launch(
            gpu_backward.window_events,
            sequences.slots(128) * H,
            dict(keys=sort.keys, weights=weights, BLOCK=128, **of_windows, **sequences.arguments()),
        ),
        sort,
        Launch(
            gpu_backward.event_sums,
            doubled.slots(sizes.event_chunk * sizes.event_chunks) * slices,
            dict(
                keys=sort.sorted,
                order=sort.order,
                weights=weights,
                totals=totals,
                lengths=sequences.lengths,
                event_ends=doubled.ends,
                tokens=sequences.tokens,
                sequences=sequences.count,
                CHUNKS=sizes.event_chunks,
                **of_gradients,
            ),
            warps=1,
        ),
        _scan(totals, bases, doubled, sizes.event_chunk),
        Launch(
            gpu_backward.walk_events,
            sequences.slots(sizes.event_block) * slices,
            dict(
                grad_x=grad_x,
                bases=bases,
                scale_bits=scale_bits,
                BLOCK=sizes.event_block,
                **of_gradients,
                **sequences.arguments(),
            ),
            warps=1,
        ),
    ]


def _scan(totals: Tensor, bases: Tensor, sequences: Sequences, chunk: int) -> Launch:
    C = totals.shape[-1]
    channels = 32
    return Launch(
        gpu_forward.scan_totals,
        sequences.count * math.ceil(C / channels),
        dict(
            totals=totals,
            bases=bases,
            ends=sequences.ends,
            tokens=sequences.tokens + sequences.context,
            sequences=sequences.count,
            channels=C,
            CHUNK=chunk,
            CHANNELS=channels,
            ROWS=32,
        ),
    )


def _direct(
    values: Tensor,
    windows: Windows,
    out: Tensor,
    sequences: Sequences,
    wild: Tensor | None = None,
    unit: tuple[int, int] = (1, 1),
    transposed: bool = False,
) -> Launch:
    """Plan direct sums of all tokens; with `wild`, of the blocks that reach a marked token.

    A mark stands for `unit` tokens and channels.
    """
    C = values.shape[-1]
    sizes = sizes_of(values.dtype, C // windows.left.shape[-1])
    block = 1 if wild is None else sizes.repair_block
    return Launch(
        gpu_direct.direct,
        sequences.slots(block) * _programs_of_heads(values, windows, sizes.span),
        dict(
            **_rows("values", values),
            out=out,
            wild=wild,
            wild_channels=unit[1],
            head_channels=C // windows.left.shape[-1],
            context=sequences.context,
            TRANSPOSED=transposed,
            BLOCK=block,
            TILE=sizes.tile,
            CHANNELS=sizes.span,
            UNIT=unit[0],
            **_window_arguments(values, windows),
            **sequences.arguments(),
        ),
        # nearly all programs of a repair only look at the marks
        warps=4 if wild is None else 1,
        # Without a bound, ptxas spills 8 bytes of some variants to have more warps at a time. None
        # of them reaches this one.
        most_registers=128 if wild is None else None,
    )


def _programs_of_heads(x: Tensor, windows: Windows, channels: int) -> int:
    """Return how many programs of so many channels each share all heads of a token."""
    C, H = x.shape[-1], windows.left.shape[-1]
    return H * math.ceil(C // H / channels)


def _window_arguments(x: Tensor, windows: Windows) -> dict[str, Any]:
    """Return what the kernels must know about windows; a side without reach is not read."""
    l_max, r_max, max_offset = windows.l_max, windows.r_max, windows.max_offset
    T = x.shape[-2]
    return dict(
        **_rows("left", windows.left if l_max else None),
        **_rows("right", windows.right if r_max else None),
        heads=windows.left.shape[-1],
        l_max=l_max,
        r_max=r_max,
        reach_left=math.ceil(min(l_max * max_offset, T)),
        reach_right=math.ceil(min(r_max * max_offset, T)),
        scale_bits=_bits_of(scale_of(l_max, r_max, windows.normalize)),
        MAX_OFFSET=max_offset,
    )


def _bits_of(value: float) -> int:
    """Return the bits of a float64, which the kernels turn back into one."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits


def _rows(name: str, tensor: Tensor | None) -> dict[str, Any]:
    """Return a tensor and its strides over batch and tokens, with contiguous channels."""
    if tensor is None:
        return {name: None, f"{name}_strides": (0, 0)}
    if tensor.stride(-1) != 1:
        tensor = tensor.contiguous()
    batch_stride = tensor.stride(0) if tensor.dim() == 3 else 0
    return {name: tensor, f"{name}_strides": (batch_stride, tensor.stride(-2))}
