"""The three roads, or ways, of a call, and the choice between them.

- If no derivative is wanted and nothing records operators, the kernel is called directly. This
  saves the cost of autograd and of the dispatcher, about half of a call at 10 tokens.
- If autograd, forward mode or torch.func want derivatives, one torch.autograd.Function has all the
  rules. A registered operator has no forward derivatives, and no derivatives in torch.func.
- torch.compile, torch.export, tracing, dispatch modes, tensor subclasses and devices without a
  kernel use the registered operator. Its rules are the same functions as those of the Function.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

_Result = TypeVar("_Result")
_PLAIN = (Tensor, Parameter)


def take(
    kernel: Callable[..., _Result],
    differentiable: Callable[..., _Result],
    operator: Callable[..., _Result],
    tensors: tuple[Tensor, ...],
    *inputs: Any,
) -> _Result:
    """Call one of three equivalent functions with `inputs`. The `tensors` of them decide which."""
    if needs_operator(tensors):
        return operator(*inputs)
    if needs_derivatives(tensors):
        return differentiable(*inputs)
    return kernel(*inputs)


def needs_operator(tensors: tuple[Tensor, ...]) -> bool:
    """Return True if something records operators, or if the kernels cannot read a tensor."""
    if (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        or torch._C._len_torch_dispatch_stack()
    ):
        return True
    for tensor in tensors:
        if type(tensor) not in _PLAIN or not (tensor.is_cpu or tensor.is_cuda):
            return True
    return not is_transformed() and not _has_memory(tensors[0])


def needs_derivatives(tensors: tuple[Tensor, ...]) -> bool:
    """Return True if autograd, forward mode or a transform of torch.func follows the call."""
    if is_transformed():
        return True
    with_gradients = torch.is_grad_enabled()
    for tensor in tensors:
        if with_gradients and tensor.requires_grad:
            return True
        if forward_ad.unpack_dual(tensor).tangent is not None:
            return True
    return False


def is_transformed() -> bool:
    """Return True within a transform of torch.func."""
    return torch._C._are_functorch_transforms_active()


def _has_memory(values: Tensor) -> bool:
    """Return False for a batch of gradients from autograd.grad(is_grads_batched=True).

    Such a tensor has no memory of its own, and only the dispatcher can split it.
    """
    try:
        values.data_ptr()
    except RuntimeError:
        return False
    return True
