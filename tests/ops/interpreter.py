"""Triton's interpreter, put right about bfloat16.

It keeps bfloat16 as bare bits: it multiplies matrices of them as integers, and cuts bits off where
GPUs round. Both are given the meaning that they have on a GPU; nothing else is changed.
"""

import numpy as np
import torch
import triton.language as tl
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

_original_cast = InterpreterBuilder.cast_impl
_original_dot = InterpreterBuilder.create_dot


def _cast(self, src, dst_type):
    kinds = (src.dtype.scalar, dst_type.scalar)
    if kinds == (tl.float32, tl.bfloat16):
        rounded = torch.from_numpy(np.ascontiguousarray(src.data)).bfloat16().view(torch.uint16)
        return TensorHandle(rounded.numpy(), tl.bfloat16)
    if kinds == (tl.bfloat16, tl.float32):
        bits = torch.from_numpy(np.ascontiguousarray(src.data))
        return TensorHandle(bits.view(torch.bfloat16).float().numpy(), tl.float32)
    return _original_cast(self, src, dst_type)


def _dot(self, a, b, *rest):
    if a.dtype.scalar == tl.bfloat16:
        a, b = (_cast(self, operand, tl.float32) for operand in (a, b))
    return _original_dot(self, a, b, *rest)


def repair_bfloat16() -> None:
    InterpreterBuilder.cast_impl = _cast
    InterpreterBuilder.create_dot = _dot
