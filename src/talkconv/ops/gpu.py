"""The operation on a GPU: runs the plans of the Triton kernels."""

import functools
import warnings
from types import ModuleType

import torch
from torch import Tensor

# Older NVIDIA GPUs have no bfloat16 and no copies to shared memory that run beside the sums.
LEAST_CAPABILITY = (8, 0)


@functools.cache
def has_kernels_for(device: torch.device) -> bool:
    """Return whether the kernels were made for this GPU; warn once about one that is too old."""
    if device.type != "cuda" or torch.version.hip is not None:
        return True
    capability = torch.cuda.get_device_capability(device)
    if capability >= LEAST_CAPABILITY:
        return True
    warnings.warn(
        "talkconv's GPU kernels need an NVIDIA GPU of compute capability 8.0 (A100) or later; "
        f"{device} has {'.'.join(map(str, capability))} and uses plain PyTorch operations: the "
        "results are the same, several times slower.",
        stacklevel=2,
    )
    return False


@functools.cache
def plans() -> ModuleType:
    """Import the kernels, and Triton with them, when the first GPU tensor needs them."""
    try:
        from talkconv.ops import gpu_plans
    except ModuleNotFoundError as error:
        raise RuntimeError(
            "tensors on a GPU need Triton, which is not installed: "
            'pip install "talkconv[gpu]", or move the tensors to the CPU'
        ) from error
    return gpu_plans


def talk_conv(
    x: Tensor,
    left: Tensor,
    right: Tensor,
    l_max: int,
    r_max: int,
    max_offset: float,
    normalize: bool,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    context: int = 0,
) -> Tensor:
    """x (B, context + T, C), offsets (B, T, H) -> (B, T, C); packed likewise."""
    out = x.new_empty((*left.shape[:-1], x.shape[-1]))
    if out.numel():
        windows = plans().Windows(left, right, l_max, r_max, max_offset, normalize)
        with torch.cuda.device_of(x):
            for step in plans().forward(x, windows, out, lengths, cu_seqlens, context):
                step.run()
    return out


def talk_conv_backward(
    grad_out: Tensor,
    x: Tensor,
    left: Tensor,
    right: Tensor,
    l_max: int,
    r_max: int,
    max_offset: float,
    normalize: bool,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients to x, left and right."""
    grads = x.new_empty(x.shape), left.new_empty(left.shape), right.new_empty(right.shape)
    if x.numel() == 0:
        return grads[0], grads[1].zero_(), grads[2].zero_()
    windows = plans().Windows(left, right, l_max, r_max, max_offset, normalize)
    grad_out = grad_out.to(x.dtype)
    with torch.cuda.device_of(x):
        for step in plans().backward(grad_out, x, windows, grads, lengths, cu_seqlens):
            step.run()
    return grads
