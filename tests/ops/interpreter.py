"""Makes Triton's interpreter compute as a GPU does where the two differ.

The interpreter stores bfloat16 as bare bits: it multiplies matrices of them as integers, and it
cuts bits off where GPUs round. Its product of matrices rounds to nearest, while tensor cores round
their accumulator toward zero after every few products. No other result is changed.

Loads and stores outside of the tensors of a launch are refused: the interpreter would read and
write any memory of the process.
"""

from collections.abc import Iterable

import numpy as np
import torch
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction, InterpreterBuilder, TensorHandle

from tests.ops.tensor_cores import multiply

_original_cast = InterpreterBuilder.cast_impl
_original_call = InterpretedFunction.__call__
_original_load = InterpreterBuilder.create_masked_load
_original_store = InterpreterBuilder.create_masked_store
_prepared: set[str] = set()
# where the tensors of the present launch begin and end, in the order of their begins
_begins = np.empty(0, np.uint64)
_ends = np.empty(0, np.uint64)


def act_as_a_gpu() -> None:
    """Replace the interpreter's casts, products and accesses, and make its calls quicker."""
    InterpreterBuilder.cast_impl = _cast
    InterpreterBuilder.create_dot = _dot
    InterpreterBuilder.create_masked_load = _load
    InterpreterBuilder.create_masked_store = _store
    InterpretedFunction.__call__ = _call


def confine_to(tensors: Iterable[torch.Tensor]) -> None:
    """Refuse all loads and stores outside of these tensors until the next call."""
    global _begins, _ends
    spans = sorted((tensor.data_ptr(), tensor.data_ptr() + _extent(tensor)) for tensor in tensors)
    _begins, _ends = np.array(spans, np.uint64).reshape(-1, 2).T


def _extent(tensor: torch.Tensor) -> int:
    """Return the bytes from the first element of a tensor to its last one."""
    if not tensor.numel():
        return 0
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in steps)
    return (last + 1) * tensor.element_size()


def _check(pointers, mask) -> None:
    addresses = pointers.data[mask.data]
    tensor = np.searchsorted(_begins, addresses, side="right") - 1
    size = np.uint64(pointers.get_element_ty().primitive_bitwidth // 8)
    outside = (tensor < 0) | (addresses + size > _ends[tensor])
    if outside.any():
        raise IndexError(f"{outside.sum()} of {outside.size} accesses leave the tensors")


def _load(self, pointers, mask, *rest):
    _check(pointers, mask)
    return _original_load(self, pointers, mask, *rest)


def _store(self, pointers, values, mask, *rest):
    _check(pointers, mask)
    return _original_store(self, pointers, values, mask, *rest)


def _call(self, *args, **kwargs):
    """Call a function of a kernel, preparing Triton's language only once for each module."""
    module = self.fn.__module__
    if module not in _prepared:
        _prepared.add(module)
        return _original_call(self, *args, **kwargs)
    return self.rewrite()(*args, **kwargs)


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
    return TensorHandle(multiply(left, right, total.data.astype(np.float32)), tl.float32)


def _values(self, operand):
    if operand.dtype.scalar == tl.bfloat16:
        operand = _cast(self, operand, tl.float32)
    assert operand.data.dtype in (np.float32, np.float16), "tensor cores multiply halves here"
    return operand.data.astype(np.float64)
