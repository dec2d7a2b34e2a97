"""Makes Triton's interpreter compute as a GPU does where the two differ.

The interpreter stores bfloat16 as bare bits: it multiplies matrices of them as integers, and it
cuts bits off where GPUs round. Its product of matrices rounds to nearest, while tensor cores round
their accumulator toward zero after every few products. No other result is changed.
"""

import numpy as np
import torch
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction, InterpreterBuilder, TensorHandle

# Tensor cores add this many products exactly, then round: 8 on an A100, 16 on an H100. The smaller
# number rounds more often.
PRODUCTS_PER_ROUNDING = 8

_original_cast = InterpreterBuilder.cast_impl
_original_call = InterpretedFunction.__call__
_prepared: set[str] = set()


def act_as_a_gpu() -> None:
    """Replace the interpreter's casts and products of matrices, and make its calls quicker."""
    InterpreterBuilder.cast_impl = _cast
    InterpreterBuilder.create_dot = _dot
    InterpretedFunction.__call__ = _call


def _call(self, *args, **kwargs):
    """Call a function of a kernel, preparing Triton's language only once for each module."""
    module = self.fn.__module__
    if module not in _prepared:
        _prepared.add(module)
        return _original_call(self, *args, **kwargs)
    return self.rewrite()(*args, **kwargs)


def toward_zero(values: np.ndarray) -> np.ndarray:
    """Round float64 to float32, always to the neighbour that is nearer to zero."""
    rounded = values.astype(np.float32)
    too_large = np.abs(rounded.astype(np.float64)) > np.abs(values)
    return np.where(too_large, np.nextafter(rounded, np.float32(0)), rounded)


def _cast(self, src, dst_type):
    kinds = (src.dtype.scalar, dst_type.scalar)
    if kinds == (tl.float32, tl.bfloat16):
        rounded = torch.from_numpy(np.ascontiguousarray(src.data)).bfloat16().view(torch.uint16)
        return TensorHandle(rounded.numpy(), tl.bfloat16)
    if kinds == (tl.bfloat16, tl.float32):
        bits = torch.from_numpy(np.ascontiguousarray(src.data))
        return TensorHandle(bits.view(torch.bfloat16).float().numpy(), tl.float32)
    return _original_cast(self, src, dst_type)


def _dot(self, a, b, total, *rest):
    left, right = (_values(self, operand) for operand in (a, b))
    sums = total.data.astype(np.float32)
    for start in range(0, left.shape[1], PRODUCTS_PER_ROUNDING):
        chosen = slice(start, start + PRODUCTS_PER_ROUNDING)
        sums = toward_zero(sums.astype(np.float64) + left[:, chosen] @ right[chosen])
    return TensorHandle(sums, tl.float32)


def _values(self, operand):
    if operand.dtype.scalar == tl.bfloat16:
        operand = _cast(self, operand, tl.float32)
    assert operand.data.dtype in (np.float32, np.float16), "tensor cores multiply halves here"
    return operand.data.astype(np.float64)
