"""talk_conv(): the public function, and the schemas of the registered operators behind it."""

from typing import Any

import torch
from torch import Tensor

from talkconv.ops import derivatives, eager, implementations
from talkconv.ops.checks import check_inputs

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
for devices, module in (("default", eager), (("cpu", "cuda"), implementations)):
    torch.library.impl(FORWARD, devices, module.talk_conv)
    torch.library.impl(BACKWARD, devices, module.talk_conv_backward)


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
    """Sum x over a separate window for each token and head. On the CPU it is O(T) for any window.

    x (B, T, C), left and right (B, T, H) in [0, max_offset] -> (B, T, C). A window reaches
    left * l_max tokens back and right * r_max ahead; r_max=0 is causal, and right may then be None.
    `lengths` (B,) ends the sequences of a padded batch; with `cu_seqlens` (S + 1,) x is packed
    (N, C) and the offsets (N, H).

    >>> x = torch.arange(1.0, 6.0).view(1, 5, 1)
    >>> half = torch.full((1, 5, 1), 0.5)
    >>> talk_conv(x, half, half, l_max=1, r_max=1, normalize=False).flatten()
    tensor([2., 4., 6., 8., 7.])
    """
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
    settings = (l_max, r_max, float(max_offset), normalize, lengths, cu_seqlens)
    # from here a call takes one of three roads, which roads.py lists
    return derivatives.talk_conv(x, left, right, *settings)


def _both(left: Tensor | None, right: Tensor | None) -> tuple[Tensor, Tensor]:
    """Replace a side that is None by zeros, expanded so that they take no memory."""
    if left is None:
        assert right is not None
        return right.new_zeros(()).expand_as(right), right
    if right is None:
        return left, left.new_zeros(()).expand_as(left)
    return left, right


def _fake(x: Tensor, left: Tensor, right: Tensor, *settings: Any) -> Tensor:
    derivatives.refuse_compiled_forward_mode(x)
    return x.new_empty(x.shape)


def _fake_backward(
    grad_out: Tensor, x: Tensor, left: Tensor, right: Tensor, *settings: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), left.new_empty(left.shape), right.new_empty(right.shape)


torch.library.register_fake(FORWARD, _fake)
torch.library.register_fake(BACKWARD, _fake_backward)
torch.library.register_autograd(FORWARD, derivatives.backward, setup_context=derivatives.save)
torch.library.register_autograd(
    BACKWARD, derivatives.backward_of_backward, setup_context=derivatives.save
)
torch.library.register_vmap(FORWARD, derivatives.vmap)
torch.library.register_vmap(BACKWARD, derivatives.vmap_backward)
