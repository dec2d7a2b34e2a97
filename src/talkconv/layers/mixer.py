"""What every mixer is: a module that lets the tokens of a sequence see one another.

TaLKConv, SelfAttention, LightConv and DynamicConv answer to the same call, so that a network takes
any of them. Here are the call, its checks, and what "padding" and "packed" mean to all of them.
"""

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from talkconv.ops.windows import Packing


class MixerState(Protocol):
    """What a stream keeps of its past. Methods return a new state and leave the old one valid."""

    @property
    def seen(self) -> int:
        """How many tokens went by, padding included."""
        ...

    def reorder(self, index: Tensor) -> "MixerState":
        """Row k becomes what row index[k] was, as beams are picked."""
        ...

    def repeat(self, n: int) -> "MixerState":
        """Each row n times in a row, as beams are opened."""
        ...

    def crop(self, tokens: int) -> "MixerState":
        """Take back the last `tokens` tokens."""
        ...


class Mixer(nn.Module):
    """x (B, T, dim) -> (B, T, dim); with `state`, the next tokens of a stream -> (out, new state).

    Padding adds nothing to other tokens; what comes out at padding is finite and means nothing.
    `lengths` (B,) ends the sequences of a batch; `padding_mask` (B, T), True at padding, may pad
    either side; with `cu_seqlens` (S + 1,) the sequences lie end to end in x (N, dim). A stream is
    padded on its left alone, by `padding_mask`.
    """

    batch_first = True  # torch.nn.TransformerEncoder asks its layers

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
        """The state before the first token; crop() can then take back up to `rollback` tokens."""
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
        """Where a state lives unless told: where the parameters do."""
        if dtype is not None and device is not None:
            # quantized layers have no parameters to ask
            return dtype, device
        parameter = next(self.parameters())
        dtype = parameter.dtype if dtype is None else dtype
        return dtype, parameter.device if device is None else device

    def _check(self, x: Tensor, given: dict[str, Tensor]) -> None:
        if len(given) > 1:
            raise ValueError(f"give one of lengths, padding_mask, cu_seqlens; got {list(given)}")
        dims, shape = (2, "(N, dim)") if "cu_seqlens" in given else (3, "(B, T, dim)")
        if x.dim() != dims or x.shape[-1] != self.dim:
            raise ValueError(
                f"x must be {shape} with dim = {self.dim}, got {tuple(x.shape)}; "
                "packed sequences (N, dim) come with cu_seqlens"
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
                f"state= needs a causal mixer (r_max=0), this {type(self).__name__} looks ahead"
            )
        if lengths is not None or cu_seqlens is not None:
            raise ValueError(
                "state= takes padding_mask alone: a stream has no end for lengths or cu_seqlens "
                "to tell. Pad prompts on their left"
            )


def mask_after(lengths: Tensor, T: int) -> Tensor:
    """lengths (B,) -> padding mask (B, T), True at and after each length."""
    return torch.arange(T, device=lengths.device) >= lengths[:, None]


def zero_padding(x: Tensor, padding_mask: Tensor | None) -> Tensor:
    """x (B, T, C) with zeros at padding: to a sum, a token that does not exist."""
    return x if padding_mask is None else x.masked_fill(padding_mask[..., None], 0)


def init_linear(linear: nn.Linear, gain: float = 1.0) -> nn.Linear:
    """Xavier-uniform weights and a bias of 0, as the authors start every linear layer."""
    nn.init.xavier_uniform_(linear.weight, gain)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear
