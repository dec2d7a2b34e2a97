"""Finds the compiled CPU kernel, and calls it through the plain C interface of csrc/api.h.

This file does not import torch, so that `talkconv doctor` can check the kernel in a moment.
"""

import ctypes
import functools
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import talkconv.ops

DTYPES = ("float32", "float64", "bfloat16", "float16")  # in the order of the enum talkconv_dtype
_LIBRARY_NAMES = ("libtalkconv_kernel.so", "libtalkconv_kernel.dylib", "libtalkconv_kernel.dll")

# The structs of csrc/api.h as bytes. Filling ctypes structures would take as long as the sums of 10
# tokens. A call has 4 tensors in the forward and 7 in the backward, each with two strides and an
# address.
_CALL = {count: struct.Struct(f"@7q2d2q3i4x{2 * count}q") for count in (4, 7)}
_ADDRESSES = {count: struct.Struct(f"@{count}q") for count in (4, 7)}
_DROPOUT = struct.Struct("@qQd2i")


class Problem(NamedTuple):
    """The struct talkconv_problem, field by field. Tensors are given by their addresses."""

    sequences: int
    tokens: int
    context: int
    channels: int
    heads: int
    l_max: int
    r_max: int
    max_offset: float
    scale: float
    lengths: int
    cu_seqlens: int
    dtype: int
    offset_dtype: int
    threads: int


class Kernel:
    """The compiled library: which instruction sets it holds and which one runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        library = ctypes.CDLL(str(path))
        self._forward = library.talkconv_forward
        self._backward = library.talkconv_backward
        for function in (self._forward, self._backward):
            function.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        self._dropout = library.talkconv_dropout
        self._dropout.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
        self._dropout.restype = None
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

    def forward(self, problem: Problem, strides: Sequence[int], addresses: Sequence[int]) -> None:
        """Compute the output; the tensors are x, left, right and the output."""
        _run(self._forward, problem, strides, addresses)

    def backward(self, problem: Problem, strides: Sequence[int], addresses: Sequence[int]) -> None:
        """Compute the gradients; the tensors are grad_out, x, left, right and the gradients."""
        _run(self._backward, problem, strides, addresses)

    def dropout(
        self, elements: int, seed: int, p: float, dtype: int, threads: int, *, x: int, out: int
    ) -> None:
        """Drop elements of the tensor at address x with probability p < 1."""
        self._dropout(_DROPOUT.pack(elements, seed, p, dtype, threads), x, out)


@functools.cache
def find_kernel() -> Kernel | None:
    """Return the compiled kernel, or None if the package was installed without one."""
    for folder in talkconv.ops.__path__:
        for name in _LIBRARY_NAMES:
            path = Path(folder) / name
            if path.exists():
                return Kernel(path)
    return None


def _run(
    function: "ctypes._NamedFuncPointer",
    problem: Problem,
    strides: Sequence[int],
    addresses: Sequence[int],
) -> None:
    call = _CALL[len(addresses)].pack(*problem, *strides)
    if function(call, _ADDRESSES[len(addresses)].pack(*addresses)) != 0:
        raise MemoryError("talk_conv: there is no memory for the kernel's running sums")
