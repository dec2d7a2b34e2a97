"""Loads the compiled CPU kernel and calls it through the plain C interface of csrc/api.h."""

import ctypes
import functools
import itertools
import struct
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import talkconv.ops
from talkconv.ops import eager, memory
from talkconv.ops.checks import check_values
from talkconv.ops.special import confined

_DTYPE_CODES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3}
_LIBRARY_NAMES = ("libtalkconv_kernel.so", "libtalkconv_kernel.dylib", "libtalkconv_kernel.dll")

# talkconv_problem, and two strides of each tensor. Packed bytes, not ctypes structures: filling
# those in takes as long as summing 10 tokens
_PROBLEM = "@7q2d2q4i"
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
        """Best first."""
        names: list[str] = []
        while (name := self._library.talkconv_isa_at(len(names))) is not None:
            names.append(name.decode())
        return names


@functools.cache
def find_kernel() -> Kernel | None:
    """The compiled kernel, or None where the package was installed without one."""
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
    """x (B, context + T, C), offsets (B, T, H) -> (B, T, C); packed likewise."""
    kernel = find_kernel()
    if kernel is None:
        _warn_no_kernel()
        plain = (l_max, r_max, max_offset, normalize, lengths, cu_seqlens)
        return confined(lambda values: eager.talk_conv(values, left, right, *plain), x)
    check_values(x, lengths, cu_seqlens)
    out = memory.empty((*left.shape[:-1], x.shape[-1]), x)
    if out.numel() == 0:
        return out
    settings = (l_max, r_max, max_offset, normalize, lengths, cu_seqlens, context)
    sides = _unread(left, l_max, out), _unread(right, r_max, out)
    _run(kernel.forward, x, left, settings, (x, *sides, out))
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
    """The gradients to x, left and right."""
    kernel = find_kernel()
    if kernel is None:
        return _eager_backward(
            grad_out, x, left, right, (l_max, r_max, max_offset, normalize, lengths, cu_seqlens)
        )
    check_values(x, lengths, cu_seqlens)
    grads = memory.empty(x.shape, x), left.new_empty(left.shape), right.new_empty(right.shape)
    if x.numel() == 0:
        return grads[0], grads[1].zero_(), grads[2].zero_()
    settings = (l_max, r_max, max_offset, normalize, lengths, cu_seqlens, 0)
    sides = _unread(left, l_max, grads[1]), _unread(right, r_max, grads[2])
    _run(kernel.backward, x, left, settings, (grad_out.to(x.dtype), x, *sides, *grads))
    return grads


def _eager_backward(
    grad_out: Tensor, x: Tensor, left: Tensor, right: Tensor, settings: tuple[Any, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    grads = eager.talk_conv_backward(grad_out, x, left, right, *settings)
    if grad_out.isfinite().all():
        return grads

    def grad_x(values: Tensor) -> Tensor:
        return eager.talk_conv_backward(values, x.to(values.dtype), left, right, *settings)[0]

    # the offsets' gradients hold what their own token alone has
    return confined(grad_x, grad_out.to(x.dtype)), *grads[1:]


def _run(
    function: "ctypes._NamedFuncPointer",
    x: Tensor,
    left: Tensor,
    settings: tuple[int, int, float, bool, Tensor | None, Tensor | None, int],
    tensors: tuple[Tensor, ...],
) -> None:
    l_max, r_max, max_offset, normalize, lengths, cu_seqlens, context = settings
    # these and the rows are kept alive until the call returns
    lengths, cu_seqlens = _int64(lengths), _int64(cu_seqlens)
    problem = problem_of(x, left, l_max, r_max, max_offset, normalize, lengths, cu_seqlens, context)
    rows = [tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in tensors]
    call_kernel(function, packed(problem, *rows), *(tensor.data_ptr() for tensor in rows))


def problem_of(
    x: Tensor,
    left: Tensor,
    l_max: int,
    r_max: int,
    max_offset: float,
    normalize: bool,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    context: int = 0,
) -> tuple[float, ...]:
    """The fields of talkconv_problem. It holds the addresses of lengths and cu_seqlens (int64)."""
    return (
        x.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1,
        x.shape[1] if cu_seqlens is None else 0,
        context,
        x.shape[-1],
        left.shape[-1],
        l_max,
        r_max,
        max_offset,
        eager.scale_of(l_max, r_max, normalize),
        0 if lengths is None else lengths.data_ptr(),
        0 if cu_seqlens is None else cu_seqlens.data_ptr(),
        _DTYPE_CODES[x.dtype],
        _DTYPE_CODES[left.dtype],
        torch.get_num_threads(),
        0,
    )


def packed(problem: tuple[float, ...], *rows: Tensor) -> bytes:
    """A call but for the addresses of its tensors, which come in the order of csrc/api.h."""
    strides = list(itertools.chain.from_iterable(_strides_of(tensor) for tensor in rows))
    return struct.pack(f"{_PROBLEM}{len(strides)}q", *problem, *strides)


def _strides_of(rows: Tensor) -> tuple[int, int]:
    """Of batch and time, in elements; packed rows have no batch."""
    strides = rows.stride()
    return (strides[0] if len(strides) == 3 else 0), strides[-2]


def call_kernel(function: "ctypes._NamedFuncPointer", call: bytes, *addresses: int) -> None:
    if function(call, _ADDRESSES[len(addresses)].pack(*addresses)) != 0:
        raise MemoryError("talk_conv: no memory for the kernel's running sums")


def _unread(side: Tensor, max_tokens: int, instead: Tensor) -> Tensor:
    """The kernel does not read a side that cannot reach anywhere: spare its copy into rows."""
    return side if max_tokens else instead


def _int64(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.to(torch.int64).contiguous()


@functools.cache
def _warn_no_kernel() -> None:
    warnings.warn(
        "talkconv runs without its compiled CPU kernel: the results are the same, several times "
        "slower. `talkconv doctor` tells why and what to install.",
        stacklevel=2,
    )
