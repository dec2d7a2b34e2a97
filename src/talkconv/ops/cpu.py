"""Loads the compiled CPU kernel and calls it through the plain C interface of csrc/api.h."""

import ctypes
import functools
import struct
from pathlib import Path

import torch
from torch import Tensor

import talkconv.ops
from talkconv.ops import memory
from talkconv.ops.checks import check_values
from talkconv.ops.windows import scale_of

_DTYPE_CODES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3}
_LIBRARY_NAMES = ("libtalkconv_kernel.so", "libtalkconv_kernel.dylib", "libtalkconv_kernel.dll")

# The structs of csrc/api.h as bytes. Filling ctypes structures would take as long as the sums of 10
# tokens. A call has 4 tensors in the forward and 7 in the backward, each with two strides and an
# address.
_CALL = {count: struct.Struct(f"@7q2d2q4i{2 * count}q") for count in (4, 7)}
_DROPOUT = struct.Struct("@qQd2i")
_ADDRESSES = {count: struct.Struct(f"@{count}q") for count in (4, 7)}


class Kernel:
    """The compiled library: which instruction sets it holds and which one runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        library = ctypes.CDLL(str(path))
        self.forward = library.talkconv_forward
        self.backward = library.talkconv_backward
        for function in (self.forward, self.backward):
            function.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        self.dropout = library.talkconv_dropout
        self.dropout.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
        self.dropout.restype = None
        for function in (library.talkconv_isa, library.talkconv_isa_at):
            function.restype = ctypes.c_char_p
        self._library = library

    @property
    def isa(self) -> str:
        name: bytes = self._library.talkconv_isa()
        return name.decode()

    @isa.setter
    def isa(self, name: str) -> None:
        if not self._library.talkconv_use_isa(name.encode()):
            raise ValueError(
                f"instruction set must be one of {self.available_isas()}, got {name!r}"
            )

    def available_isas(self) -> list[str]:
        """Return the instruction sets that run here, the best first."""
        names: list[str] = []
        while (name := self._library.talkconv_isa_at(len(names))) is not None:
            names.append(name.decode())
        return names


@functools.cache
def find_kernel() -> Kernel | None:
    """Return the compiled kernel, or None if the package was installed without one."""
    for folder in talkconv.ops.__path__:
        for name in _LIBRARY_NAMES:
            path = Path(folder) / name
            if path.exists():
                return Kernel(path)
    return None


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
    threads = torch.get_num_threads()
    call = _DROPOUT.pack(values.numel(), seed, p, _DTYPE_CODES[x.dtype], threads)
    if values.numel():
        _kernel().dropout(call, values.data_ptr(), out.data_ptr())
    return out


def _kernel() -> Kernel:
    kernel = find_kernel()
    assert kernel is not None
    return kernel


def _if_read(side: Tensor, max_tokens: int, instead: Tensor) -> Tensor:
    """Return the side, or `instead` if its windows reach no token, so that it is not read.

    This avoids a copy of an expanded tensor of zeros.
    """
    return side if max_tokens else instead


def _call(
    function: "ctypes._NamedFuncPointer",
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
    call = _CALL[len(rows)].pack(
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
        0,
        *strides,
    )
    addresses = _ADDRESSES[len(rows)].pack(*[tensor.data_ptr() for tensor in rows])
    if function(call, addresses) != 0:
        raise MemoryError("talk_conv: there is no memory for the kernel's running sums")


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
