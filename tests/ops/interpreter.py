"""Makes Triton's interpreter compute as a GPU does where the two differ.

The interpreter stores bfloat16 as bare bits: it multiplies matrices of them as integers, and it
cuts bits off where GPUs round. Its product of matrices rounds to nearest, while tensor cores round
their accumulator toward zero after every few products. No other result is changed.

Every load and store is checked against the tensor that its pointer was made from: the interpreter
would read and write any memory of the process. Each tensor of a launch has a number, which stands
in the bits of a pointer that addresses do not use, and arithmetic with the pointer leaves it there.
"""

import dataclasses
import functools

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import (
    GridExecutor,
    InterpretedFunction,
    InterpreterBuilder,
    TensorHandle,
)

from tests.ops.tensor_cores import multiply

_original_cast = InterpreterBuilder.cast_impl
_original_call = InterpretedFunction.__call__
_original_load = InterpreterBuilder.create_masked_load
_original_store = InterpreterBuilder.create_masked_store
_original_launch = GridExecutor.__call__
_original_argument = interpreter._implicit_cvt
_scalar_numpy_dtype = functools.cache(interpreter._get_np_dtype)
_prepared: set[str] = set()

# addresses have fewer bits
ADDRESS_BITS = 48
# the addresses at which the tensors of the present launch begin and end, by their numbers
_begins: list[int] = []
_ends: list[int] = []


def act_as_a_gpu() -> None:
    """Replace the interpreter's casts, products and accesses, and make its calls quicker."""
    GridExecutor.__call__ = _launch
    interpreter._implicit_cvt = _argument
    interpreter._get_np_dtype = _numpy_dtype
    # it computes for every sum of integers whether it overflows, and then does nothing about it
    options = dataclasses.replace(interpreter.interpreter_builder.options, sanitize_overflow=False)
    interpreter.interpreter_builder.options = options
    InterpreterBuilder.cast_impl = _cast
    InterpreterBuilder.create_dot = _dot
    InterpreterBuilder.create_masked_load = _load
    InterpreterBuilder.create_masked_store = _store
    InterpretedFunction.__call__ = _call


def _launch(self, *args, **kwargs):
    _begins.clear()
    _ends.clear()
    return _original_launch(self, *args, **kwargs)


def _argument(value):
    """Return an argument as the kernel gets it: a pointer with a number for a tensor."""
    found = _original_argument(value)
    if isinstance(value, torch.Tensor):
        found.handle.data += np.uint64(len(_begins) << ADDRESS_BITS)
        _begins.append(value.data_ptr())
        _ends.append(value.data_ptr() + _extent(value))
    return found


def _extent(tensor: torch.Tensor) -> int:
    """Return the bytes from the first element of a tensor to its last one."""
    if not tensor.numel():
        return 0
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in steps)
    return (last + 1) * tensor.element_size()


def _addresses(pointers, mask) -> TensorHandle:
    """Return the addresses of pointers, after a check that they are inside their tensors."""
    addresses = pointers.data & np.uint64(2**ADDRESS_BITS - 1)
    used = addresses[mask.data]
    tensor = (pointers.data[mask.data] >> np.uint64(ADDRESS_BITS)).astype(np.int64)
    size = np.uint64(pointers.get_element_ty().primitive_bitwidth // 8)
    outside = (used < np.array(_begins, np.uint64)[tensor]) | (
        used + size > np.array(_ends, np.uint64)[tensor]
    )
    if outside.any():
        raise IndexError(f"{outside.sum()} of {outside.size} accesses leave their tensor")
    return TensorHandle(addresses, pointers.dtype)


def _load(self, pointers, mask, *rest):
    return _original_load(self, _addresses(pointers, mask), mask, *rest)


def _store(self, pointers, values, mask, *rest):
    return _original_store(self, _addresses(pointers, mask), values, mask, *rest)


def _numpy_dtype(dtype):
    """Return numpy's name of a type; Triton makes a table of all types for each question."""
    scalar = dtype.scalar
    return np.dtype(np.uint64) if scalar.is_ptr() else _scalar_numpy_dtype(scalar)


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
