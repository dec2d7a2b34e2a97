"""Decoding steps: the causal operation on a stream, with a state of constant size.

The state is the tail of the stream: the last tokens that a window can still reach. Before the first
token the state holds zeros. They add nothing to a sum, so no positions are counted and no error
grows with the stream.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from talkconv.ops import derivatives, eager, implementations, roads
from talkconv.ops.checks import DTYPES, check_inputs, check_max_offset, check_reach
from talkconv.ops.stream import StreamTail
from talkconv.ops.windows import reach_in_tokens

STEP = "talkconv::talk_conv_step"


@dataclass(frozen=True)
class TaLKState(StreamTail):
    """The past that a stream still needs: (B, reach + up to `rollback`, C) tokens, the newest last.

    A step returns a new state and leaves the old one as it was.
    """

    tokens: Tensor
    l_max: int
    max_offset: float
    rollback: int
    seen: int

    @classmethod
    def empty(
        cls,
        batch: int,
        channels: int,
        *,
        l_max: int,
        max_offset: float = 1.0,
        rollback: int = 0,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> "TaLKState":
        """Make the state before the first token. crop() can later remove `rollback` tokens."""
        check_reach("l_max", l_max)
        check_max_offset(max_offset)
        check_reach("rollback", rollback)
        dtype = dtype or torch.get_default_dtype()
        if dtype not in DTYPES:
            raise TypeError(f"dtype must be a floating one of {DTYPES}, got {dtype}")
        if batch < 0 or channels < 1:
            raise ValueError(
                f"batch must be at least 0 and channels at least 1, got {batch=}, {channels=}"
            )
        rows = reach_in_tokens(l_max, max_offset) + rollback
        tokens = torch.zeros(batch, rows, channels, dtype=dtype, device=device)
        return cls(tokens, l_max, float(max_offset), rollback, seen=0)

    @property
    def reach(self) -> int:
        return reach_in_tokens(self.l_max, self.max_offset)


def talk_conv_step(
    x: Tensor, left: Tensor, state: TaLKState, *, normalize: bool = True
) -> tuple[Tensor, TaLKState]:
    """Process the next tokens of a causal stream: x (B, t, C), left (B, t, H), t >= 1 -> (B, t, C).

    >>> state = TaLKState.empty(1, 1, l_max=1)
    >>> out, state = talk_conv_step(torch.ones(1, 1, 1), torch.ones(1, 1, 1), state)
    >>> out, state = talk_conv_step(torch.ones(1, 1, 1), torch.ones(1, 1, 1), state)
    >>> out.item()  # half of this token plus half of the one before
    1.0
    """
    _check_step(x, left, state)
    window, new_state = state.extend(x)
    inputs = (window, left, state.l_max, state.max_offset, normalize)
    out: Tensor = roads.take(
        _step, _differentiable_step, torch.ops.talkconv.talk_conv_step, (window, left), *inputs
    )
    return out, new_state


def _check_step(x: Tensor, left: Tensor, state: TaLKState) -> None:
    if not isinstance(state, TaLKState):
        raise TypeError(
            f"state must be a TaLKState (TaLKState.empty(...)), got {type(state).__name__}"
        )
    check_inputs(x, left, None, l_max=state.l_max, r_max=0, max_offset=state.max_offset)
    B, t, C = x.shape
    if t < 1:
        raise ValueError(f"a step takes at least one token, got x of {tuple(x.shape)}")
    tokens = state.tokens
    if tokens.shape[0] != B or tokens.shape[2] != C:
        raise ValueError(
            f"x must be (B, t, C) with B, C = {(tokens.shape[0], tokens.shape[2])} of the state, "
            f"got {tuple(x.shape)}; state.repeat(n) opens beams"
        )
    if x.dtype != tokens.dtype:
        raise TypeError(
            f"x must have the dtype of the state, {tokens.dtype}, got {x.dtype}; "
            "pass dtype= to TaLKState.empty"
        )
    if x.device != tokens.device:
        raise ValueError(f"x must be on the device of the state, {tokens.device}, got {x.device}")


def _step(window: Tensor, left: Tensor, l_max: int, max_offset: float, normalize: bool) -> Tensor:
    context = window.shape[1] - left.shape[1]
    return implementations.talk_conv(
        window, left, left, l_max, 0, max_offset, normalize, None, None, context=context
    )


def _differentiable_step(
    window: Tensor, left: Tensor, l_max: int, max_offset: float, normalize: bool
) -> Tensor:
    """Compute the step as the end of the operation on the whole window, which has all rules."""
    offsets = _with_context(window, left)
    zeros = torch.zeros_like(offsets)
    out = derivatives.talk_conv(window, offsets, zeros, l_max, 0, max_offset, normalize, None, None)
    return out[:, window.shape[1] - left.shape[1] :].contiguous()


def _eager_step(
    window: Tensor, left: Tensor, l_max: int, max_offset: float, normalize: bool
) -> Tensor:
    context = window.shape[1] - left.shape[1]
    return eager.talk_conv(window, left, left, l_max, 0, max_offset, normalize, None, None, context)


def _with_context(window: Tensor, per_token: Tensor) -> Tensor:
    """Put zeros before the rows of a step, for the earlier tokens: (B, t, H) -> (B, T, H)."""
    return F.pad(per_token, (0, 0, window.shape[1] - per_token.shape[1], 0))


def _fake(window: Tensor, left: Tensor, l_max: int, max_offset: float, normalize: bool) -> Tensor:
    derivatives.refuse_compiled_forward_mode(window)
    return window.new_empty(left.shape[0], left.shape[1], window.shape[2])


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    window, left, *ctx.settings = inputs
    ctx.save_for_backward(window, left)


def _backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
    window, left = ctx.saved_tensors
    l_max, max_offset, normalize = ctx.settings
    offsets = _with_context(window, left)
    grad_window, grad_left, _ = derivatives.talk_conv_backward(
        _with_context(window, grad_out),
        window,
        offsets,
        torch.zeros_like(offsets),
        l_max,
        0,
        max_offset,
        normalize,
        None,
        None,
    )
    return grad_window, grad_left[:, window.shape[1] - left.shape[1] :], None, None, None


torch.library.define(
    STEP, "(Tensor window, Tensor left, int l_max, float max_offset, bool normalize) -> Tensor"
)
torch.library.impl(STEP, "default", _eager_step)
torch.library.impl(STEP, ("cpu", "cuda"), _step)
torch.library.register_fake(STEP, _fake)
torch.library.register_autograd(STEP, _backward, setup_context=_save)
