"""Derivatives of every order, and the rules for the transforms of torch.func.

The operation is linear in x and piecewise linear in the offsets, so a derivative is the operation
again plus the tokens at the edges of the windows. Each rule is written once: the autograd Functions
and the registered operators use the same functions.
"""

import inspect
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from talkconv.ops import implementations, roads
from talkconv.ops.windows import (
    Edge,
    by_head,
    offset_grads,
    scale_of,
    side_by_side,
    window_edges,
)

# for l_max, r_max, max_offset, normalize, lengths and cu_seqlens
NO_GRADIENT = (None,) * 6


def talk_conv(*inputs: Any) -> Tensor:
    """Compute the operation, checked already, on the road that its tensors need."""
    out: Tensor = roads.take(
        implementations.talk_conv,
        _TalkConv.apply,
        torch.ops.talkconv.talk_conv,
        inputs[:3],
        *inputs,
    )
    return out


def talk_conv_backward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients to x, left and right on the road that the tensors need."""
    grads: tuple[Tensor, Tensor, Tensor] = roads.take(
        implementations.talk_conv_backward,
        _TalkConvBackward.apply,
        torch.ops.talkconv.talk_conv_backward,
        inputs[:4],
        *inputs,
    )
    return grads


def refuse_compiled_forward_mode(x: Tensor) -> None:
    """Raise if a compiler would take the tangents of a registered operator for zeros."""
    if torch.compiler.is_compiling() and forward_ad.unpack_dual(x).tangent is not None:
        raise NotImplementedError(
            "talk_conv has no forward derivatives (torch.func.jvp) inside torch.compile: "
            "take them outside of it, or take reverse derivatives"
        )


def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keep what backward() and backward_of_backward() need."""
    *leading, l_max, r_max, max_offset, normalize, lengths, cu_seqlens = inputs
    ctx.save_for_backward(*leading, lengths, cu_seqlens)
    ctx.settings = (l_max, r_max, max_offset, normalize)


def _save_for_both(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    save(ctx, inputs, output)
    ctx.save_for_forward(*ctx.to_save)


def _saved(ctx: Any) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
    """Return the leading tensors and the settings that save() kept."""
    *leading, lengths, cu_seqlens = ctx.saved_tensors
    return tuple(leading), (*ctx.settings, lengths, cu_seqlens)


def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
    """Return a gradient, or None, for each input of the operation."""
    leading, settings = _saved(ctx)
    return (*talk_conv_backward(grad_out, *leading, *settings), *NO_GRADIENT)


def backward_of_backward(
    ctx: Any, to_grad_x: Tensor, to_grad_left: Tensor, to_grad_right: Tensor
) -> tuple[Tensor | None, ...]:
    """Return a gradient, or None, for each input of talk_conv_backward().

    It is written in differentiable operations, so that every higher derivative exists as well.
    """
    (grad_out, x, left, right), settings = _saved(ctx)
    edges = _weighted_edges(x, left, right, (to_grad_left, to_grad_right), settings)
    to_grad_out = _moved(talk_conv(to_grad_x, left, right, *settings), x, edges)
    to_x = _moved_grad_x(grad_out, x, edges)
    to_offsets = offset_grads(grad_out, to_grad_x, left, right, *settings)
    return (to_grad_out, to_x, *to_offsets, *NO_GRADIENT)


WeightedEdges = list[tuple[Edge, Tensor]]


def _moved(moved_by_x: Tensor, x: Tensor, edges: WeightedEdges) -> Tensor:
    """Add the movement by the offsets' tangents to the movement of the output by x's tangent."""
    moved = moved_by_x
    for edge, weight in edges:
        moved = moved + side_by_side(weight * edge.gather_from(x))
    return moved


def _moved_grad_x(grad_out: Tensor, x: Tensor, edges: WeightedEdges) -> Tensor:
    """Return how the gradient to x moves as the offsets move along their tangents."""
    moved = torch.zeros_like(x)
    for edge, weight in edges:
        grads = by_head(grad_out, edge.token.shape[-1])
        moved = moved + edge.scatter_to(weight * grads)
    return moved


def _weighted_edges(
    x: Tensor,
    left: Tensor,
    right: Tensor,
    tangents: tuple[Tensor, ...],
    settings: tuple[Any, ...],
) -> WeightedEdges:
    """Return the edges of the windows, and how much each moves along its offset's tangent."""
    l_max, r_max, max_offset, normalize, lengths, cu_seqlens = settings
    scale = scale_of(l_max, r_max, normalize)
    edges = window_edges(x, left, right, l_max, r_max, max_offset, lengths, cu_seqlens)
    sides = zip(edges, tangents, (l_max, r_max), strict=True)
    return [
        (edge, (scale * max_tokens * tangent)[..., None].to(x.dtype))
        for edge, tangent, max_tokens in sides
    ]


def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
    """Compute a mapped call as one call with a larger batch."""
    out = talk_conv(*_fold(info, in_dims, inputs))
    return out.unflatten(0, (info.batch_size, -1)), 0


def vmap_backward(
    info: Any, in_dims: tuple[int | None, ...], *inputs: Any
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """Compute mapped gradients as one call with a larger batch."""
    grads = talk_conv_backward(*_fold(info, in_dims, inputs))
    return tuple(grad.unflatten(0, (info.batch_size, -1)) for grad in grads), (0, 0, 0)


def _fold(info: Any, in_dims: tuple[int | None, ...], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
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


class _TalkConv(torch.autograd.Function):
    """The operation with all its rules: autograd, forward mode and torch.func."""

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        return implementations.talk_conv(*inputs)

    setup_context = staticmethod(_save_for_both)
    backward = staticmethod(backward)
    vmap = staticmethod(vmap)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        (x, left, right), settings = _saved(ctx)
        edges = _weighted_edges(x, left, right, tangents[1:3], settings)
        return _moved(talk_conv(tangents[0], left, right, *settings), x, edges)


class _TalkConvBackward(torch.autograd.Function):
    """The gradient of the operation, itself differentiable."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        return implementations.talk_conv_backward(*inputs)

    setup_context = staticmethod(_save_for_both)
    backward = staticmethod(backward_of_backward)
    vmap = staticmethod(vmap_backward)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Tensor, ...]:
        (grad_out, x, left, right), settings = _saved(ctx)
        to_grad_out, to_x, *to_offsets = tangents[:4]
        grads = talk_conv_backward(to_grad_out, x, left, right, *settings)
        edges = _weighted_edges(x, left, right, tuple(to_offsets), settings)
        grad_x = _moved_grad_x(grad_out, x, edges)
        offsets = offset_grads(grad_out, to_x, left, right, *settings)
        return grads[0] + grad_x, grads[1] + offsets[0], grads[2] + offsets[1]


# torch binds the arguments of forward() at each call. Without this attribute it would compute the
# signature each time, which takes as long as the sums of 10 tokens.
for _function in (_TalkConv, _TalkConvBackward):
    vars(_function)["forward"].__func__.__signature__ = inspect.Signature(
        [inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL)]
    )
