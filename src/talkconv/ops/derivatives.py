"""Derivatives of every order, and the rules by which torch.func's transforms take them.

The operation is linear in x and piecewise linear in the offsets: a derivative is the operation
again, and the tokens at the edges of the windows.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from talkconv.ops import eager

# l_max, r_max, max_offset, normalize, lengths, cu_seqlens
NO_GRADIENT = (None,) * 6


def talk_conv(*inputs: Any) -> Tensor:
    """The registered operator, in whatever form those who listen can take it."""
    out: Tensor = _call(_TalkConv, torch.ops.talkconv.talk_conv, inputs)
    return out


def talk_conv_backward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    operator = torch.ops.talkconv.talk_conv_backward
    grads: tuple[Tensor, Tensor, Tensor] = _call(_TalkConvBackward, operator, inputs)
    return grads


def _call(function: Any, operator: Any, inputs: tuple[Any, ...]) -> Any:
    return function.apply(*inputs) if transforms_at_work() else operator(*inputs)


def transforms_at_work() -> bool:
    """torch.func's or forward differentiation: they know no registered operator's derivatives."""
    return not torch.compiler.is_compiling() and (
        torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0
    )


def refuse_compiled_forward_mode() -> None:
    """The compiler would take the tangents of a registered operator for zeros."""
    if torch.compiler.is_compiling() and forward_ad._current_level >= 0:
        raise NotImplementedError(
            "talk_conv has no forward derivatives (torch.func.jvp) inside torch.compile: "
            "take them outside of it, or reverse ones"
        )


def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    *leading, l_max, r_max, max_offset, normalize, lengths, cu_seqlens = inputs
    ctx.save_for_backward(*leading, lengths, cu_seqlens)
    ctx.settings = (l_max, r_max, max_offset, normalize)


def _save_for_both(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    save(ctx, inputs, output)
    ctx.save_for_forward(*ctx.to_save)


def _saved(ctx: Any) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
    """The leading tensors, and the settings."""
    *leading, lengths, cu_seqlens = ctx.saved_tensors
    return tuple(leading), (*ctx.settings, lengths, cu_seqlens)


def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
    leading, settings = _saved(ctx)
    return (*talk_conv_backward(grad_out, *leading, *settings), *NO_GRADIENT)


def backward_of_backward(
    ctx: Any, to_grad_x: Tensor, to_grad_left: Tensor, to_grad_right: Tensor
) -> tuple[Tensor | None, ...]:
    """Written in differentiable operations, so that every higher derivative exists as well."""
    (grad_out, x, left, right), settings = _saved(ctx)
    edges = _weighted_edges(x, left, right, (to_grad_left, to_grad_right), settings)
    to_grad_out = _moved(talk_conv(to_grad_x, left, right, *settings), x, edges)
    to_x = _moved_grad_x(grad_out, x, edges)
    to_offsets = eager.offset_grads(grad_out, to_grad_x, left, right, *settings)
    return (to_grad_out, to_x, *to_offsets, *NO_GRADIENT)


WeightedEdges = list[tuple[eager.Edge, Tensor]]


def _moved(moved_by_x: Tensor, x: Tensor, edges: WeightedEdges) -> Tensor:
    """How the output moves as x and the offsets move along their tangents."""
    moved = moved_by_x
    for edge, weight in edges:
        moved = moved + eager.side_by_side(weight * edge.gather_from(x))
    return moved


def _moved_grad_x(grad_out: Tensor, x: Tensor, edges: WeightedEdges) -> Tensor:
    """How the gradient to x moves as the offsets move along their tangents."""
    moved = torch.zeros_like(x)
    for edge, weight in edges:
        grads = eager.by_head(grad_out, edge.token.shape[-1])
        moved = moved + edge.scatter_to(weight * grads)
    return moved


def _weighted_edges(
    x: Tensor,
    left: Tensor,
    right: Tensor,
    tangents: tuple[Tensor, ...],
    settings: tuple[Any, ...],
) -> WeightedEdges:
    """The edges of the windows, and how much each moves along its offset's tangent."""
    l_max, r_max, max_offset, normalize, lengths, cu_seqlens = settings
    scale = eager.scale_of(l_max, r_max, normalize)
    edges = eager.window_edges(x, left, right, l_max, r_max, max_offset, lengths, cu_seqlens)
    sides = zip(edges, tangents, (l_max, r_max), strict=True)
    return [
        (edge, (scale * max_tokens * tangent)[..., None].to(x.dtype))
        for edge, tangent, max_tokens in sides
    ]


def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
    out = talk_conv(*_fold(info, in_dims, inputs))
    return out.unflatten(0, (info.batch_size, -1)), 0


def vmap_backward(
    info: Any, in_dims: tuple[int | None, ...], *inputs: Any
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
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
    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        out: Tensor = torch.ops.talkconv.talk_conv(*inputs)
        return out

    setup_context = staticmethod(_save_for_both)
    backward = staticmethod(backward)
    vmap = staticmethod(vmap)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        (x, left, right), settings = _saved(ctx)
        edges = _weighted_edges(x, left, right, tangents[1:3], settings)
        return _moved(talk_conv(tangents[0], left, right, *settings), x, edges)


class _TalkConvBackward(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        grads: tuple[Tensor, Tensor, Tensor] = torch.ops.talkconv.talk_conv_backward(*inputs)
        return grads

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
        offsets = eager.offset_grads(grad_out, to_x, left, right, *settings)
        return grads[0] + grad_x, grads[1] + offsets[0], grads[2] + offsets[1]
