"""Whether tensors look like earlier ones, asked in one call, as torch.compile asks for its graphs.

Asked one by one in Python the same questions take four times as long, and most of it while the
caches are still empty from the sums of the call before.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

try:
    from torch._C._dynamo.guards import TensorGuards
except ImportError:  # not a public name: without it every call is checked anew
    TensorGuards = None  # type: ignore[assignment, misc]


def guard(*tensors: Tensor) -> Callable[..., bool] | None:
    """Tells of as many others if they have the type, dtype, device, shape, strides and need of a
    gradient of these, and if the same modes and transforms are at work. No of a tensor that comes
    twice; forward differentiation it does not see. None where this PyTorch has no such guards.
    """
    if TensorGuards is None:
        return None
    every = {
        "dynamic_dims_sizes": [list(tensor.shape) for tensor in tensors],
        "dynamic_dims_strides": [list(tensor.stride()) for tensor in tensors],
    }
    make: Any = TensorGuards  # its stub knows of no tensors
    try:
        check: Callable[..., bool] = make(*tensors, **every).check
    except TypeError:  # another signature than that of today
        return None
    return check
