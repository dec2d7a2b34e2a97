"""When a kernel may be called past torch's dispatcher.

The dispatcher asks autograd, tracers, transforms and modes before it calls a Python kernel. That
takes 65 us of a call at 10 tokens whose sums take 50, and more with gradients. Where none of them
is there to be asked, the public functions skip it; the registered operators stay the one road for
everybody else.
"""

import torch
from torch import Tensor
from torch.autograd import forward_ad


def nobody_listens(*tensors: Tensor) -> bool:
    """No gradient is wanted, nothing traces or transforms, and the tensors are ordinary ones."""
    return only_autograd_listens(*tensors) and not wants_gradient(*tensors)


def wants_gradient(*tensors: Tensor) -> bool:
    if torch.is_grad_enabled():
        # a loop, not any(): this runs before every call
        for tensor in tensors:
            if tensor.requires_grad:
                return True
    return False


def only_autograd_listens(*tensors: Tensor) -> bool:
    """Nothing traces or transforms, and the tensors are ordinary ones; gradients may be wanted."""
    if (
        torch.compiler.is_compiling()
        or torch._C._is_tracing()
        or torch._C._len_torch_dispatch_stack() != 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
    ):
        return False
    # a loop, not all(): this runs before every call
    for tensor in tensors:
        if type(tensor) is not Tensor or tensor.is_neg() or tensor._is_zerotensor():
            return False
        if not torch._C._has_storage(tensor):  # autograd.grad(is_grads_batched=True) has its own
            return False
    return True
