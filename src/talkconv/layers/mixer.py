"""Mixer: the base of all modules that combine the tokens of a sequence with one another.

TaLKConv, SelfAttention, LightConv and DynamicConv are called in the same way, so that a network can
use any of them. This file defines the call, its checks, and the meaning of padded and packed.
"""

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from talkconv.ops.windows import Packing


class MixerState(Protocol):
    """The part of a stream's past that a mixer keeps.

    Methods return a new state and leave the old one valid.
    """

    @property
    def seen(self) -> int:
        """The number of tokens read so far, padding included."""
        ...

    def reorder(self, index: Tensor) -> "MixerState":
        """Return a state in which row k is the former row index[k], to select beams."""
        ...

    def repeat(self, n: int) -> "MixerState":
        """Return a state with n adjacent copies of each row, to start n beams."""
        ...

    def crop(self, tokens: int) -> "MixerState":
        """Return the state before the last `tokens` tokens."""
        ...


class Mixer(nn.Module):
    """Mixes tokens: x (B, T, dim) -> (B, T, dim).

    With `state`, x is the next tokens of a stream, and the result is (out, new state).
    Padding adds nothing to other tokens, and the outputs at padding are finite but meaningless.
    Padding is given in one of three ways. `lengths` (B,) are the lengths of the sequences.
    `padding_mask` (B, T) is True at padding, which may be on either side. With `cu_seqlens`
    (S + 1,), the sequences lie end to end in x (N, dim). A stream can be padded on the left only,
    with `padding_mask`.
    """

    batch_first = True  # torch.nn.TransformerEncoder reads this from its layers

    def __init__(self, dim: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        if heads < 1 or dim < 1 or dim % heads:
            raise ValueError(f"heads must divide dim, got {dim=}, {heads=}")
        self.dim = dim
        self.heads = heads
        self.causal = causal

    def forward(
        self,
        x: Tensor,
        *,
        lengths: Tensor | None = None,
        padding_mask: Tensor | None = None,
        cu_seqlens: Tensor | None = None,
        state: Any = None,
    ) -> Any:
        given = {"lengths": lengths, "padding_mask": padding_mask, "cu_seqlens": cu_seqlens}
        self._check(x, {name: value for name, value in given.items() if value is not None})
        if state is not None:
            self._check_stream(lengths, cu_seqlens)
            return self._step(x, padding_mask, state)
        if cu_seqlens is not None:
            return self._mix_packed(x, cu_seqlens)
        return self._mix(x, lengths, padding_mask)

    def empty_state(
        self,
        batch: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        rollback: int = 0,
    ) -> Any:
        """Return the state before the first token. crop() can later remove `rollback` tokens."""
        raise NotImplementedError

    def _mix(self, x: Tensor, lengths: Tensor | None, padding_mask: Tensor | None) -> Tensor:
        raise NotImplementedError

    def _step(self, x: Tensor, padding_mask: Tensor | None, state: Any) -> tuple[Tensor, Any]:
        raise NotImplementedError

    def _mix_packed(self, x: Tensor, cu_seqlens: Tensor) -> Tensor:
        packing = Packing(cu_seqlens)
        return packing.pack(self._mix(packing.pad(x), packing.lengths, None))

    def _default_place(
        self, dtype: torch.dtype | None, device: torch.device | str | None
    ) -> tuple[torch.dtype, torch.device | str]:
        """Return the dtype and device of a state. The default is those of the parameters."""
        if dtype is not None and device is not None:
            # quantized layers have no parameters
            return dtype, device
        parameter = next(self.parameters())
        dtype = parameter.dtype if dtype is None else dtype
        return dtype, parameter.device if device is None else device

    def _check(self, x: Tensor, given: dict[str, Tensor]) -> None:
        if len(given) > 1:
            raise ValueError(f"pass one of lengths, padding_mask, cu_seqlens; got {list(given)}")
        dims, shape = (2, "(N, dim)") if "cu_seqlens" in given else (3, "(B, T, dim)")
        if x.dim() != dims or x.shape[-1] != self.dim:
            raise ValueError(
                f"x must be {shape} with dim = {self.dim}, got {tuple(x.shape)}; "
                "packed sequences (N, dim) need cu_seqlens"
            )
        lengths = given.get("lengths")
        if lengths is not None and lengths.shape != x.shape[:1]:
            raise ValueError(
                f"lengths must be (B,) with B = {x.shape[0]}, got {tuple(lengths.shape)}"
            )
        mask = given.get("padding_mask")
        if mask is not None and (mask.shape != x.shape[:2] or mask.dtype != torch.bool):
            raise ValueError(
                f"padding_mask must be bool (B, T) = {tuple(x.shape[:2])}, True at padding, "
                f"got {mask.dtype} {tuple(mask.shape)}"
            )

    def _check_stream(self, lengths: Tensor | None, cu_seqlens: Tensor | None) -> None:
        if not self.causal:
            raise ValueError(
                f"state= needs a causal mixer (r_max=0), but this {type(self).__name__} looks ahead"
            )
        if lengths is not None or cu_seqlens is not None:
            raise ValueError(
                "state= can be combined with padding_mask only: a stream has no end, so lengths "
                "and cu_seqlens mean nothing. Pad prompts on the left"
            )


def mask_after(lengths: Tensor, T: int) -> Tensor:
    """Return the padding mask (B, T) of lengths (B,). It is True from each length on."""
    return torch.arange(T, device=lengths.device) >= lengths[:, None]


def zero_padding(x: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Return x (B, T, C) with zeros at padding, so that padding adds nothing to a sum."""
    return x if padding_mask is None else x.masked_fill(padding_mask[..., None], 0)


def init_linear(linear: nn.Linear, gain: float = 1.0) -> nn.Linear:
    """Start a linear layer as the authors do, with Xavier-uniform weights and a bias of 0.

    The layer remembers its gain, because transformers draws the weights of a network once more.
    """
    linear.first_gain = gain  # type: ignore[assignment]  # any attribute is allowed
    nn.init.xavier_uniform_(linear.weight, gain)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear


def first_gain(linear: nn.Linear) -> float:
    """Return the gain with which init_linear() started a layer, or 1."""
    return getattr(linear, "first_gain", 1.0)
