"""The common base of light and dynamic convolutions: kernels of fixed width after a softmax."""

from dataclasses import dataclass

import torch
from torch import Tensor

from talkconv.layers.band import convolve
from talkconv.layers.dropout import Dropout
from talkconv.layers.mixer import Mixer, mask_after, zero_padding
from talkconv.ops.stream import StreamTail


@dataclass(frozen=True)
class KernelState(StreamTail):
    """The last tokens of a stream that a kernel of kernel_size tokens still needs."""

    tokens: Tensor
    kernel_size: int
    rollback: int
    seen: int

    @property
    def reach(self) -> int:
        return self.kernel_size - 1


class KernelConv(Mixer):
    """Convolves the channels of each head with a kernel whose weights add up to 1.

    A causal kernel ends at its token. Other kernels start kernel_size // 2 tokens before it.
    Weights that fall outside the sequence are dropped; the others do not grow to replace them.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        kernel_size: int,
        *,
        causal: bool,
        weight_dropout: float,
    ) -> None:
        super().__init__(dim, heads, causal=causal)
        if kernel_size < 1:
            raise ValueError(f"kernel_size must be at least 1, got {kernel_size}")
        self.kernel_size = kernel_size
        self.weight_dropout = Dropout(weight_dropout)

    def empty_state(
        self,
        batch: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        rollback: int = 0,
    ) -> KernelState:
        dtype, device = self._default_place(dtype, device)
        rows = self.kernel_size - 1 + rollback
        tokens = torch.zeros(batch, rows, self.dim, dtype=dtype, device=device)
        return KernelState(tokens, self.kernel_size, rollback, seen=0)

    def kernels(self, x: Tensor) -> Tensor:
        """Return the kernels of x (B, T, dim): (B, T, H, K), or (H, K) if all tokens share them."""
        raise NotImplementedError

    def _mix(self, x: Tensor, lengths: Tensor | None, padding_mask: Tensor | None) -> Tensor:
        if lengths is not None:
            padding_mask = mask_after(lengths, x.shape[1])
        x = zero_padding(x, padding_mask)
        before = self.kernel_size - 1 if self.causal else self.kernel_size // 2
        after = self.kernel_size - 1 - before
        return convolve(x, self.kernels(x), before=before, after=after)

    def _step(
        self, x: Tensor, padding_mask: Tensor | None, state: KernelState
    ) -> tuple[Tensor, KernelState]:
        if state.tokens.shape[0] != x.shape[0]:
            raise ValueError(
                f"the state holds {state.tokens.shape[0]} sequences, got {x.shape[0]}; "
                "state.repeat(n) opens beams"
            )
        x = zero_padding(x, padding_mask)
        window, state = state.extend(x)
        return convolve(window, self.kernels(x)), state

    def extra_repr(self) -> str:
        return (
            f"{self.dim}, heads={self.heads}, kernel_size={self.kernel_size}, causal={self.causal}"
        )
