"""talk_conv(): the public function and the registered operator behind it.

The one road: public function, torch's dispatcher, kernel. The schemas stand here and nowhere else.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from talkconv.ops import cpu, derivatives, eager, gpu
from talkconv.ops.checks import check_inputs
from talkconv.ops.direct import only_autograd_listens, wants_gradient
from talkconv.ops.repeat import Layout, layout_of

_SETTINGS = (
    "int l_max, int r_max, float max_offset, bool normalize, Tensor? lengths, Tensor? cu_seqlens"
)
FORWARD = "talkconv::talk_conv"
BACKWARD = "talkconv::talk_conv_backward"

torch.library.define(FORWARD, f"(Tensor x, Tensor left, Tensor right, {_SETTINGS}) -> Tensor")
torch.library.define(
    BACKWARD,
    f"(Tensor grad_out, Tensor x, Tensor left, Tensor right, {_SETTINGS}) "
    "-> (Tensor, Tensor, Tensor)",
)
for device, kernels in (("default", eager), ("cpu", cpu), ("cuda", gpu)):
    torch.library.impl(FORWARD, device, kernels.talk_conv)
    torch.library.impl(BACKWARD, device, kernels.talk_conv_backward)


def talk_conv(
    x: Tensor,
    left: Tensor | None,
    right: Tensor | None,
    *,
    l_max: int,
    r_max: int,
    max_offset: float = 1.0,
    normalize: bool = True,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> Tensor:
    """Sum x over a window of its own for each token and head; on the CPU, in O(T) for any window.

    x (B, T, C), left and right (B, T, H) in [0, max_offset] -> (B, T, C). A window reaches
    left * l_max tokens back and right * r_max ahead; r_max=0 is causal, and right may then be None.
    `lengths` (B,) ends the sequences of a padded batch; with `cu_seqlens` (S + 1,) x is packed
    (N, C) and the offsets (N, H).

    >>> x = torch.arange(1.0, 6.0).view(1, 5, 1)
    >>> half = torch.full((1, 5, 1), 0.5)
    >>> talk_conv(x, half, half, l_max=1, r_max=1, normalize=False).flatten()
    tensor([2., 4., 6., 8., 7.])
    """
    out: Tensor
    if lengths is None and cu_seqlens is None and left is not None:
        layout = layout_of(x, left, right, l_max, r_max, max_offset, normalize)
        if layout is not None:
            if layout.requires_grad and torch.is_grad_enabled():
                out = _apply_repeated(layout, x, left, right)
            else:
                out = layout.forward(x, left, right)
            return out
    check_inputs(
        x,
        left,
        right,
        l_max=l_max,
        r_max=r_max,
        max_offset=max_offset,
        lengths=lengths,
        cu_seqlens=cu_seqlens,
    )
    left, right = _both(left, right)
    inputs = (x, left, right, l_max, r_max, float(max_offset), normalize, lengths, cu_seqlens)
    if not (x.is_cpu and only_autograd_listens(x, left, right)):
        out = derivatives.talk_conv(*inputs)
    elif wants_gradient(x, left, right):
        out = _DirectOnCPU.apply(*inputs)  # type: ignore[no-untyped-call]
    else:
        out = cpu.talk_conv(*inputs)
    return out


def _both(left: Tensor | None, right: Tensor | None) -> tuple[Tensor, Tensor]:
    """A side that nobody passed is 0 everywhere, without the memory."""
    if left is None:
        assert right is not None
        return right.new_zeros(()).expand_as(right), right
    if right is None:
        return left, left.new_zeros(()).expand_as(left)
    return left, right


def _fake(x: Tensor, left: Tensor, right: Tensor, *settings: Any) -> Tensor:
    derivatives.refuse_compiled_forward_mode()
    return x.new_empty(x.shape)


def _fake_backward(
    grad_out: Tensor, x: Tensor, left: Tensor, right: Tensor, *settings: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), left.new_empty(left.shape), right.new_empty(right.shape)


class _DirectOnCPU(torch.autograd.Function):
    """The kernels with nothing between them and autograd, which alone is listening."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        derivatives.save(ctx, inputs, None)
        return cpu.talk_conv(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad_out,) = grads
        # gradients are enabled in a backward where the gradient's own gradient is wanted
        if torch.is_grad_enabled() or not only_autograd_listens(grad_out):
            return derivatives.backward(ctx, grad_out)
        x, left, right, lengths, cu_seqlens = ctx.saved_tensors
        settings = (*ctx.settings, lengths, cu_seqlens)
        found = cpu.talk_conv_backward(grad_out, x, left, right, *settings)
        return (*found, *derivatives.NO_GRADIENT)


class _Repeated(torch.autograd.Function):
    """The same for a call like an earlier one. At 10 tokens every argument more is felt."""

    @staticmethod
    def forward(ctx: Any, layout: Layout, x: Tensor, left: Tensor, right: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, left, right)
        ctx.layout = layout
        return layout.forward(x, left, right)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad_out,) = grads
        x, left, right = ctx.saved_tensors
        rows = None if torch.is_grad_enabled() else ctx.layout.rows_of(grad_out)
        if rows is not None:
            found = ctx.layout.backward(rows, x, left, right)
        else:
            both = _both(left, right)
            settings = (*ctx.layout.settings, None, None)
            found = derivatives.talk_conv_backward(grad_out, x, *both, *settings)
        return None, *found[:2], None if right is None else found[2]


# Function.apply asks for functorch's transforms first; where one is at work, no layout fits
_apply_repeated: Callable[..., Tensor] = super(torch.autograd.Function, _Repeated).apply


torch.library.register_fake(FORWARD, _fake)
torch.library.register_fake(BACKWARD, _fake_backward)
torch.library.register_autograd(FORWARD, derivatives.backward, setup_context=derivatives.save)
torch.library.register_autograd(
    BACKWARD, derivatives.backward_of_backward, setup_context=derivatives.save
)
torch.library.register_vmap(FORWARD, derivatives.vmap)
torch.library.register_vmap(BACKWARD, derivatives.vmap_backward)
