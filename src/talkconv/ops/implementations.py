"""Picks the implementation of the operation for a device: C++, Triton or plain PyTorch."""

import functools
import warnings
from types import ModuleType
from typing import Any

from torch import Tensor

from talkconv.ops import cpu, eager, gpu, library


def talk_conv(x: Tensor, left: Tensor, right: Tensor, *settings: Any, context: int = 0) -> Tensor:
    """x (B, context + T, C), offsets (B, T, H) -> (B, T, C); packed likewise without context.

    The settings are l_max, r_max, max_offset, normalize, lengths and cu_seqlens.
    """
    out: Tensor
    compiled = _compiled_for(x)
    if compiled is not None:
        out = compiled.talk_conv(x, left, right, *settings, context=context)
    else:
        out = eager.talk_conv_confined(x, left, right, *settings, context=context)
    return out


def talk_conv_backward(
    grad_out: Tensor, x: Tensor, left: Tensor, right: Tensor, *settings: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients to x, left and right."""
    grads: tuple[Tensor, Tensor, Tensor]
    compiled = _compiled_for(x)
    if compiled is not None:
        grads = compiled.talk_conv_backward(grad_out, x, left, right, *settings)
    else:
        grads = eager.talk_conv_backward_confined(grad_out, x, left, right, *settings)
    return grads


def _compiled_for(x: Tensor) -> ModuleType | None:
    if not x.is_cpu:
        return gpu if gpu.has_kernels_for(x.device) else None
    if library.find_kernel() is not None:
        return cpu
    _warn_no_kernel()
    return None


@functools.cache
def _warn_no_kernel() -> None:
    warnings.warn(
        "talkconv runs without its compiled CPU kernel: the results are the same, several times "
        "slower. `talkconv doctor` tells why and what to install.",
        stacklevel=2,
    )
