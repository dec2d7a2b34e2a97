"""Launches the Triton kernels: what a GPU tensor gets.

Nothing here waits for the GPU or reads from it, so that calls can be captured in CUDA graphs; the
numbers in `lengths` and `cu_seqlens` are clamped to the tensors by the kernels instead of checked.
"""

import functools
import math
import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

# Positions around a block have 32 bits in the kernels, twice the reach included; addresses have 64.
MOST_TOKENS = 2**30 - 2**10

# Tensor cores multiply no fewer channels at a time; more would spill registers.
FEWEST_CHANNELS, MOST_CHANNELS = 16, 32


# Older NVIDIA GPUs have no bfloat16 and no copies to shared memory that run beside the sums.
LEAST_CAPABILITY = (8, 0)


@functools.cache
def has_kernels_for(device: torch.device) -> bool:
    """Return whether the kernels were made for this GPU; warn once about one that is too old."""
    if device.type != "cuda" or torch.version.hip is not None:
        return True
    capability = torch.cuda.get_device_capability(device)
    if capability >= LEAST_CAPABILITY:
        return True
    warnings.warn(
        "talkconv's GPU kernels need an NVIDIA GPU of compute capability 8.0 (A100) or later; "
        f"{device} has {'.'.join(map(str, capability))} and uses plain PyTorch operations: the "
        "results are the same, several times slower.",
        stacklevel=2,
    )
    return False


@functools.cache
def kernels() -> ModuleType:
    """Triton is imported with the first GPU tensor: nobody else needs it or waits for it."""
    try:
        from talkconv.ops import gpu_kernels
    except ModuleNotFoundError as error:
        raise RuntimeError(
            "tensors on a GPU need Triton, which is not installed: "
            'pip install "talkconv[gpu]", or move the tensors to the CPU'
        ) from error
    return gpu_kernels


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
    """x (B, context + T, C), offsets (B, T, H) -> (B, T, C); packed likewise."""
    out = x.new_empty((*left.shape[:-1], x.shape[-1]))
    if out.numel():
        windows = Windows(left, right, l_max, r_max, max_offset, normalize)
        plan_forward(x, windows, out, lengths, cu_seqlens, context).run(x)
    return out


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
    grads = x.new_empty(x.shape), left.new_empty(left.shape), right.new_empty(right.shape)
    if x.numel() == 0:
        return grads[0], grads[1].zero_(), grads[2].zero_()
    windows = Windows(left, right, l_max, r_max, max_offset, normalize)
    plan_backward(grad_out.to(x.dtype), x, windows, grads, lengths, cu_seqlens).run(x)
    return grads


@dataclass(frozen=True)
class Windows:
    """The offsets and what turns them into windows."""

    left: Tensor
    right: Tensor
    l_max: int
    r_max: int
    max_offset: float
    normalize: bool


@dataclass(frozen=True)
class Launch:
    """One kernel, how many programs of it, and all its arguments by name."""

    kernel: Any
    programs: int
    arguments: dict[str, Any]

    @property
    def options(self) -> dict[str, int | bool]:
        """For the compiler: 16 tokens of the block to a warp, and sums as they are written."""
        warps = self.arguments["BLOCK"] // 16
        return dict(num_warps=warps, num_stages=3, enable_fp_fusion=False)

    def run(self, x: Tensor) -> None:
        """On the device of x and its current stream."""
        if self.programs == 0:
            return
        with torch.cuda.device_of(x):
            self.kernel[(self.programs,)](**self.arguments, **self.options)


def plan_forward(
    x: Tensor,
    windows: Windows,
    out: Tensor,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    context: int = 0,
) -> Launch:
    """One program for each block of tokens, head and slice of its channels."""
    arguments = dict(
        out=out,
        context=context,
        **_rows("x", x),
        **_window_arguments(x, windows),
        **_sequence_arguments(out, lengths, cu_seqlens),
    )
    slices = -(-arguments["head_channels"] // arguments["CHANNELS"])
    return Launch(kernels().forward, _blocks(arguments) * arguments["heads"] * slices, arguments)


def plan_backward(
    grad_out: Tensor,
    x: Tensor,
    windows: Windows,
    grads: tuple[Tensor, Tensor, Tensor],
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> Launch:
    """One program for each block of tokens and head: offsets sum over all of its channels."""
    arguments = dict(
        **dict(zip(("grad_x", "grad_left", "grad_right"), grads, strict=True)),
        **_rows("grad_out", grad_out),
        **_rows("x", x),
        **_window_arguments(x, windows),
        **_sequence_arguments(x, lengths, cu_seqlens),
    )
    return Launch(kernels().backward, _blocks(arguments) * arguments["heads"], arguments)


def block_sizes(dtype: torch.dtype, head_channels: int, window: float) -> dict[str, int]:
    """Tokens a block, tokens a tile, channels a program, for windows of so many tokens.

    Nothing here knows the batch or the length: a sequence gives the same bits wherever it stands.
    Nothing is tuned or timed at run time either.
    """
    # the tokens around a block are read by its neighbours too: longer windows, longer blocks
    block = 64 if window <= 128 else 128
    # float64 has no tensor cores to count on: its tokens are added one by one
    if dtype == torch.float64:
        return dict(BLOCK=block, TILE=1, CHANNELS=FEWEST_CHANNELS)
    channels = 2 ** (head_channels - 1).bit_length()
    channels = min(max(channels, FEWEST_CHANNELS), MOST_CHANNELS)
    return dict(BLOCK=block, TILE=16, CHANNELS=channels)


def _window_arguments(x: Tensor, windows: Windows) -> dict[str, Any]:
    """What both kernels must know of the windows. A side that cannot reach is not read."""
    l_max, r_max, max_offset = windows.l_max, windows.r_max, windows.max_offset
    H = windows.left.shape[-1]
    T, C = x.shape[-2:]
    return dict(
        **_rows("left", windows.left if l_max else None),
        **_rows("right", windows.right if r_max else None),
        heads=H,
        head_channels=C // H,
        l_max=l_max,
        r_max=r_max,
        reach_left=math.ceil(min(l_max * max_offset, T)),
        reach_right=math.ceil(min(r_max * max_offset, T)),
        divisor=l_max + r_max + 1 if windows.normalize else 1,
        MAX_OFFSET=max_offset,
        **block_sizes(x.dtype, C // H, (l_max + r_max) * max_offset),
    )


def _sequence_arguments(
    out: Tensor, lengths: Tensor | None, cu_seqlens: Tensor | None
) -> dict[str, Any]:
    tokens = out.shape[-2]
    if tokens > MOST_TOKENS:
        raise ValueError(f"on a GPU x has at most {MOST_TOKENS} tokens along time, got {tokens}")
    ends = None if cu_seqlens is None else _ends(cu_seqlens, tokens)
    return dict(
        lengths=None if lengths is None else lengths.contiguous(),
        ends=ends,
        tokens=tokens,
        sequences=out.shape[0] if ends is None else ends.shape[0] - 1,
    )


def _ends(cu_seqlens: Tensor, tokens: int) -> Tensor:
    """Return where sequences begin and end, from 0 to `tokens`, never falling: (S + 3,).

    The first and the last one hold the rows that no sequence covers. Correct cu_seqlens leave both
    empty; wrong ones cannot be reported without waiting for the GPU, but they must not lead outside
    the tensors or leave a row of the results unwritten.
    """
    if cu_seqlens.shape[0] == 1 and tokens:
        raise ValueError(
            f"cu_seqlens must run from 0 to N = {tokens} (the rows of x), got 1 number; "
            "for one sequence pass [0, N]"
        )
    inner = cu_seqlens.to(torch.int64).clamp(0, tokens).cummax(0).values
    return torch.cat((inner.new_zeros(1), inner, inner.new_full((1,), tokens)))


def _blocks(arguments: dict[str, Any]) -> int:
    """Blocks start anew with each sequence; packed, an upper bound without asking the GPU."""
    tokens, sequences, block = (arguments[name] for name in ("tokens", "sequences", "BLOCK"))
    if arguments["ends"] is not None:
        return int(tokens // block + sequences)
    return int(sequences * -(-tokens // block))


def _rows(name: str, tensor: Tensor | None) -> dict[str, Any]:
    """A tensor and its strides over batch and tokens; the last dimension must be contiguous."""
    if tensor is None:
        return {name: None, f"{name}_strides": (0, 0)}
    if tensor.stride(-1) != 1:
        tensor = tensor.contiguous()
    batch_stride = tensor.stride(0) if tensor.dim() == 3 else 0
    return {name: tensor, f"{name}_strides": (batch_stride, tensor.stride(-2))}
