"""When a kernel may be called past torch's dispatcher.

The dispatcher asks autograd, tracers, transforms and modes before it calls a Python kernel. That
takes 65 us of a call at 10 tokens whose sums take 50. Where none of them is there to be asked, the
public functions skip it; the registered operators stay the one road for everybody else.
"""

import torch
from torch import Tensor


def nobody_listens(*tensors: Tensor) -> bool:
    """No gradient is wanted, nothing traces or transforms, and the tensors are ordinary ones."""
    return (
        not torch.compiler.is_compiling()
        and all(type(tensor) is Tensor for tensor in tensors)
        and not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
    )
