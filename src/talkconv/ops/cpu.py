"""Calls the compiled CPU kernel with tensors."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from talkconv.ops import library, memory
from talkconv.ops.checks import check_values
from talkconv.ops.library import Kernel, Problem
from talkconv.ops.windows import scale_of

_DTYPE_CODES = {getattr(torch, name): code for code, name in enumerate(library.DTYPES)}


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
    """x (B, context + T, C), offsets (B, T, H) -> (B, T, C); packed likewise without context."""
    check_values(x, lengths, cu_seqlens)
    out = memory.empty((*left.shape[:-1], x.shape[-1]), x)
    if out.numel() == 0:
        return out
    settings = (l_max, r_max, max_offset, normalize, lengths, cu_seqlens, context)
    sides = _if_read(left, l_max, out), _if_read(right, r_max, out)
    _call(_kernel().forward, x, left, settings, (x, *sides, out))
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
    check_values(x, lengths, cu_seqlens)
    grads = memory.empty(x.shape, x), _contiguous_like(left), _contiguous_like(right)
    if x.numel() == 0:
        return grads[0], grads[1].zero_(), grads[2].zero_()
    settings = (l_max, r_max, max_offset, normalize, lengths, cu_seqlens, 0)
    sides = _if_read(left, l_max, grads[1]), _if_read(right, r_max, grads[2])
    _call(_kernel().backward, x, left, settings, (grad_out.to(x.dtype), x, *sides, *grads))
    return grads


def dropout(x: Tensor, p: float, seed: int) -> Tensor:
    """Drop elements with probability p < 1; the same seed drops the same elements again."""
    values = _readable(x).contiguous()
    out = torch.empty_like(values)
    if values.numel():
        sizes = values.numel(), seed, p, _DTYPE_CODES[x.dtype], torch.get_num_threads()
        _kernel().dropout(*sizes, x=values.data_ptr(), out=out.data_ptr())
    return out


def _kernel() -> Kernel:
    kernel = library.find_kernel()
    assert kernel is not None
    return kernel


def _if_read(side: Tensor, max_tokens: int, instead: Tensor) -> Tensor:
    """Return the side, or `instead` if its windows reach no token, so that it is not read.

    This avoids a copy of an expanded tensor of zeros.
    """
    return side if max_tokens else instead


def _call(
    run: Callable[[Problem, Sequence[int], Sequence[int]], None],
    x: Tensor,
    left: Tensor,
    settings: tuple[int, int, float, bool, Tensor | None, Tensor | None, int],
    tensors: tuple[Tensor, ...],
) -> None:
    l_max, r_max, max_offset, normalize, lengths, cu_seqlens, context = settings
    # these names keep the memory alive until the call returns
    lengths, cu_seqlens = _int64(lengths), _int64(cu_seqlens)
    rows: list[Tensor] = []
    strides: list[int] = []
    for tensor in tensors:
        tensor = _readable(tensor)
        rows.append(tensor)
        outer = tensor.stride()
        strides += outer[:2] if cu_seqlens is None else (0, outer[0])
    problem = Problem(
        x.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1,
        x.shape[1] if cu_seqlens is None else 0,
        context,
        x.shape[-1],
        left.shape[-1],
        l_max,
        r_max,
        max_offset,
        scale_of(l_max, r_max, normalize),
        0 if lengths is None else lengths.data_ptr(),
        0 if cu_seqlens is None else cu_seqlens.data_ptr(),
        _DTYPE_CODES[x.dtype],
        _DTYPE_CODES[left.dtype],
        torch.get_num_threads(),
    )
    run(problem, strides, [tensor.data_ptr() for tensor in rows])


def _contiguous_like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _readable(tensor: Tensor) -> Tensor:
    """Return the tensor with its values in memory, and each row of channels contiguous."""
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    if tensor.data_ptr() == 0:  # autograd's symbolic zeros
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _int64(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.to(torch.int64).contiguous()
