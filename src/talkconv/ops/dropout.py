"""Dropout that stores no mask: its backward drops the same elements again, by the same seed.

In a training step on a CPU, drawing masks one number after the other took a sixth of the time, and
each mask took as much memory as its input.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from talkconv.ops import cpu, library, roads
from talkconv.ops.checks import DTYPES

_MOST_SEEDS = 2**63 - 1


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Set each element to 0 with probability p and scale the others by 1 / (1 - p).

    It is called like torch.nn.functional.dropout, and takes its seed from torch's generator.
    PyTorch's own dropout is used on other devices, in compilers and torch.func, and without a
    compiled kernel.

    >>> _ = torch.manual_seed(0)
    >>> dropout(torch.ones(100_000), 0.25).unique()
    tensor([0.0000, 1.3333])
    """
    if not training or p == 0:
        return x
    if p == 1 or not _can_run(x):
        return F.dropout(x, p)
    seed = int(torch.randint(_MOST_SEEDS, ()))
    if roads.needs_derivatives((x,)):
        out: Tensor = _Dropout.apply(x, p, seed)  # type: ignore[no-untyped-call]
        return out
    return cpu.dropout(x, p, seed)


def _can_run(x: Tensor) -> bool:
    """Return True if the compiled kernel can compute the dropout of x and its derivatives."""
    return (
        not roads.needs_operator((x,))
        and not roads.is_transformed()
        and x.is_cpu
        and x.dtype in DTYPES
        and library.find_kernel() is not None
    )


def _drop_again(x: Tensor, p: float, seed: int) -> Tensor:
    """Drop the elements that the seed chose before."""
    if _can_run(x):
        out: Tensor = _Dropout.apply(x, p, seed)  # type: ignore[no-untyped-call]
        return out
    # A transform or a tracer needs ordinary operators, so multiply with a mask.
    mask = cpu.dropout(torch.ones(x.shape, dtype=x.dtype), p, seed)
    return x * mask


class _Dropout(torch.autograd.Function):
    """The operation is linear, so each of its derivatives is the operation again."""

    @staticmethod
    def forward(x: Tensor, p: float, seed: int) -> Tensor:
        return cpu.dropout(x, p, seed)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float, int], output: Tensor) -> None:
        _, ctx.p, ctx.seed = inputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (grad_out,) = grads
        return _drop_again(grad_out, ctx.p, ctx.seed), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        return _drop_again(tangent, ctx.p, ctx.seed)
