"""Loads the compiled CPU kernel and calls it. The structs mirror csrc/api.h, field for field."""

import ctypes
import functools
import warnings
from pathlib import Path

import torch
from torch import Tensor

import talkconv.ops
from talkconv.ops import eager
from talkconv.ops.checks import check_values

_DTYPE_CODES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3}
_LIBRARY_NAMES = ("libtalkconv_kernel.so", "libtalkconv_kernel.dylib", "libtalkconv_kernel.dll")


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("batch_stride", ctypes.c_int64),
        ("time_stride", ctypes.c_int64),
    )


class _Problem(ctypes.Structure):
    _fields_ = (
        ("sequences", ctypes.c_int64),
        ("tokens", ctypes.c_int64),
        ("context", ctypes.c_int64),
        ("channels", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("l_max", ctypes.c_int64),
        ("r_max", ctypes.c_int64),
        ("max_offset", ctypes.c_double),
        ("scale", ctypes.c_double),
        ("lengths", ctypes.c_void_p),
        ("cu_seqlens", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("offset_dtype", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    )


class Kernel:
    """The compiled library: which instruction sets it holds and which one runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        library = ctypes.CDLL(str(path))
        problem = ctypes.POINTER(_Problem)
        self.forward = library.talkconv_forward
        self.forward.argtypes = [problem, *[_Tensor] * 4]
        self.backward = library.talkconv_backward
        self.backward.argtypes = [problem, *[_Tensor] * 7]
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
        return eager.talk_conv(
            x, left, right, l_max, r_max, max_offset, normalize, lengths, cu_seqlens
        )
    check_values(x, lengths, cu_seqlens)
    out = x.new_empty((*left.shape[:-1], x.shape[-1]))
    if out.numel() == 0:
        return out
    call = _Call(x, left, l_max, r_max, max_offset, normalize, lengths, cu_seqlens, context)
    call.run(kernel.forward, x, left if l_max else None, right if r_max else None, out)
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
        return eager.talk_conv_backward(
            grad_out, x, left, right, l_max, r_max, max_offset, normalize, lengths, cu_seqlens
        )
    check_values(x, lengths, cu_seqlens)
    grads = x.new_empty(x.shape), left.new_empty(left.shape), right.new_empty(right.shape)
    if x.numel() == 0:
        return grads[0], grads[1].zero_(), grads[2].zero_()
    call = _Call(x, left, l_max, r_max, max_offset, normalize, lengths, cu_seqlens, context=0)
    used = (left if l_max else None, right if r_max else None)
    call.run(kernel.backward, grad_out.to(x.dtype), x, *used, *grads)
    return grads


class _Call:
    """One call into the kernel: its settings, and the tensors it keeps alive meanwhile."""

    def __init__(
        self,
        x: Tensor,
        left: Tensor,
        l_max: int,
        r_max: int,
        max_offset: float,
        normalize: bool,
        lengths: Tensor | None,
        cu_seqlens: Tensor | None,
        context: int,
    ) -> None:
        self.kept = [_int64(lengths), _int64(cu_seqlens)]
        packed = cu_seqlens is not None
        self.problem = _Problem(
            sequences=cu_seqlens.shape[0] - 1 if cu_seqlens is not None else x.shape[0],
            tokens=0 if packed else x.shape[1],
            context=context,
            channels=x.shape[-1],
            heads=left.shape[-1],
            l_max=l_max,
            r_max=r_max,
            max_offset=max_offset,
            scale=eager.scale_of(l_max, r_max, normalize),
            lengths=_address(self.kept[0]),
            cu_seqlens=_address(self.kept[1]),
            dtype=_DTYPE_CODES[x.dtype],
            offset_dtype=_DTYPE_CODES[left.dtype],
            threads=torch.get_num_threads(),
        )

    def run(self, function: "ctypes._NamedFuncPointer", *tensors: Tensor | None) -> None:
        status = function(ctypes.byref(self.problem), *(self._view(t) for t in tensors))
        if status != 0:
            raise MemoryError("talk_conv: no memory for the kernel's running sums")

    def _view(self, tensor: Tensor | None) -> _Tensor:
        if tensor is None:
            return _Tensor(None, 0, 0)
        # any strides but in the last dimension, where rows must be contiguous
        if tensor.stride(-1) != 1:
            tensor = tensor.contiguous()
            self.kept.append(tensor)
        batch_stride = tensor.stride(0) if tensor.dim() == 3 else 0
        return _Tensor(tensor.data_ptr(), batch_stride, tensor.stride(-2))


def _int64(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.to(torch.int64).contiguous()


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


@functools.cache
def _warn_no_kernel() -> None:
    warnings.warn(
        "talkconv runs without its compiled CPU kernel: the results are the same, several times "
        "slower. `talkconv doctor` tells why and what to install.",
        stacklevel=2,
    )
