"""talk_conv(): the public function and the registered operator behind it.

The one road: public function, torch's dispatcher, kernel. The schemas stand here and nowhere else.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from talkconv.ops import cpu, eager, gpu
from talkconv.ops.checks import check_inputs
from talkconv.ops.direct import only_autograd_listens, wants_gradient
from talkconv.ops.repeat import Layout, layout_of

_SETTINGS = (
    "int l_max, int r_max, float max_offset, bool normalize, Tensor? lengths, Tensor? cu_seqlens"
)
_NO_GRADIENT = [None for _ in _SETTINGS.split(",")]
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
    >>> 3 * talk_conv(x, half, half, l_max=1, r_max=1).flatten()
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
        out = torch.ops.talkconv.talk_conv(*inputs)
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
    return x.new_empty(x.shape)


def _fake_backward(
    grad_out: Tensor, x: Tensor, left: Tensor, right: Tensor, *settings: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), left.new_empty(left.shape), right.new_empty(right.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    *leading, l_max, r_max, max_offset, normalize, lengths, cu_seqlens = inputs
    ctx.save_for_backward(*leading, lengths, cu_seqlens)
    ctx.settings = (l_max, r_max, max_offset, normalize)


def _backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
    x, left, right, lengths, cu_seqlens = ctx.saved_tensors
    settings = (*ctx.settings, lengths, cu_seqlens)
    grads = torch.ops.talkconv.talk_conv_backward(grad_out, x, left, right, *settings)
    return (*grads, *_NO_GRADIENT)


def _may_be_direct(grad_out: Tensor) -> bool:
    """Gradients are enabled in a backward where the gradient's own gradient is wanted."""
    return not torch.is_grad_enabled() and only_autograd_listens(grad_out)


class _DirectOnCPU(torch.autograd.Function):
    """The kernels with nothing between them and autograd, which alone is listening."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        _save(ctx, inputs, None)
        return cpu.talk_conv(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad_out,) = grads
        if not _may_be_direct(grad_out):
            return _backward(ctx, grad_out)
        x, left, right, lengths, cu_seqlens = ctx.saved_tensors
        settings = (*ctx.settings, lengths, cu_seqlens)
        return *cpu.talk_conv_backward(grad_out, x, left, right, *settings), *_NO_GRADIENT


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
        if _may_be_direct(grad_out):
            found = ctx.layout.backward(grad_out.to(x.dtype).contiguous(), x, left, right)
        else:
            both = _both(left, right)
            settings = (*ctx.layout.settings, None, None)
            found = torch.ops.talkconv.talk_conv_backward(grad_out, x, *both, *settings)
        return None, *found[:2], None if right is None else found[2]


# Function.apply asks for functorch's transforms first; where one is at work, no layout fits
_apply_repeated: Callable[..., Tensor] = super(torch.autograd.Function, _Repeated).apply


def _backward_of_backward(
    ctx: Any, to_grad_x: Tensor, to_grad_left: Tensor, to_grad_right: Tensor
) -> tuple[Tensor | None, ...]:
    """Second derivatives: the operation is linear in x and piecewise linear in the offsets.

    Written in differentiable operations, so that every higher derivative exists as well.
    """
    grad_out, x, left, right, lengths, cu_seqlens = ctx.saved_tensors
    l_max, r_max, max_offset, normalize = ctx.settings
    settings = (*ctx.settings, lengths, cu_seqlens)
    scale = eager.scale_of(l_max, r_max, normalize)
    edges = eager.window_edges(x, left, right, l_max, r_max, max_offset, lengths, cu_seqlens)

    to_grad_out = torch.ops.talkconv.talk_conv(to_grad_x, left, right, *settings)
    to_x = torch.zeros_like(x)
    grads = grad_out.unflatten(-1, (left.shape[-1], -1))
    sides = zip(edges, (to_grad_left, to_grad_right), (l_max, r_max), strict=True)
    for edge, to_offset_grad, max_tokens in sides:
        weight = (scale * max_tokens * to_offset_grad)[..., None].to(x.dtype)
        to_grad_out = to_grad_out + (weight * edge.gather_from(x)).flatten(-2)
        to_x = to_x + edge.scatter_to(weight * grads)
    to_left, to_right = eager.offset_grads(grad_out, to_grad_x, left, right, *settings)
    return (to_grad_out, to_x, to_left, to_right, *_NO_GRADIENT)


def _fold_vmap(
    info: Any, in_dims: tuple[int | None, ...], inputs: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Fold the mapped dimension of every tensor into its batch dimension."""
    if inputs[-1] is not None:
        raise NotImplementedError(
            "vmap over packed sequences (cu_seqlens) is not supported: "
            "map over a padded batch with lengths instead"
        )

    def fold(value: Any, dim: int | None) -> Any:
        if not isinstance(value, Tensor):
            return value
        mapped = (
            value.movedim(dim, 0)
            if dim is not None
            else value.expand(info.batch_size, *value.shape)
        )
        return mapped.flatten(0, 1)

    return tuple(fold(value, dim) for value, dim in zip(inputs, in_dims, strict=True))


def _vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
    out = torch.ops.talkconv.talk_conv(*_fold_vmap(info, in_dims, inputs))
    return out.unflatten(0, (info.batch_size, -1)), 0


def _vmap_backward(
    info: Any, in_dims: tuple[int | None, ...], *inputs: Any
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    grads = torch.ops.talkconv.talk_conv_backward(*_fold_vmap(info, in_dims, inputs))
    return tuple(grad.unflatten(0, (info.batch_size, -1)) for grad in grads), (0, 0, 0)


torch.library.register_fake(FORWARD, _fake)
torch.library.register_fake(BACKWARD, _fake_backward)
torch.library.register_autograd(FORWARD, _backward, setup_context=_save)
torch.library.register_autograd(BACKWARD, _backward_of_backward, setup_context=_save)
torch.library.register_vmap(FORWARD, _vmap)
torch.library.register_vmap(BACKWARD, _vmap_backward)
