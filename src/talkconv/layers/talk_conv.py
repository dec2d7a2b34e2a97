"""TaLKConv: each token predicts its window, and the operation sums the tokens in the window."""

import torch
from torch import Tensor, nn

from talkconv.layers.dropout import Dropout
from talkconv.layers.mixer import Mixer, init_linear, zero_padding
from talkconv.network_settings import NetworkSettings
from talkconv.ops.step import TaLKState, talk_conv_step
from talkconv.ops.talk_conv import talk_conv


class TaLKConv(Mixer):
    """Time-aware Large Kernel convolution: x (B, T, dim) -> (B, T, dim).

    One linear layer predicts the offsets of all heads from all channels. Dropout scales up the
    offsets that it keeps, so in training windows may be wider than l_max and r_max. With r_max=0
    the layer is causal.

    >>> layer = TaLKConv(8, heads=2, l_max=3, r_max=0).eval()
    >>> x = torch.randn(1, 5, 8)
    >>> state = layer.empty_state(batch=1)
    >>> first, state = layer(x[:, :3], state=state)
    >>> then, state = layer(x[:, 3:], state=state)
    >>> torch.allclose(torch.cat((first, then), dim=1), layer(x), atol=1e-6)
    True
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        l_max: int,
        r_max: int,
        offset_dropout: float = NetworkSettings.offset_dropout,
        *,
        normalize: bool = NetworkSettings.normalize,
    ) -> None:
        super().__init__(dim, heads, causal=r_max == 0)
        if not 0 <= offset_dropout < 1:
            raise ValueError(f"offset_dropout must lie in [0, 1), got {offset_dropout}")
        if l_max < 0 or r_max < 0:
            raise ValueError(f"l_max and r_max must be at least 0, got {l_max=}, {r_max=}")
        self.l_max = l_max
        self.r_max = r_max
        self.normalize = normalize
        self.to_offsets = init_linear(nn.Linear(dim, heads if self.causal else 2 * heads))
        self.offset_dropout = Dropout(offset_dropout)

    @property
    def max_offset(self) -> float:
        """The largest possible offset: 1, or 1 / (1 - dropout) in training."""
        return 1 / (1 - self.offset_dropout.p) if self.training else 1.0

    def empty_state(
        self,
        batch: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        rollback: int = 0,
    ) -> TaLKState:
        dtype, device = self._default_place(dtype, device)
        return TaLKState.empty(
            batch,
            self.dim,
            l_max=self.l_max,
            max_offset=self.max_offset,
            rollback=rollback,
            dtype=dtype,
            device=device,
        )

    def offsets(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return left and right (..., H) of x (..., dim). right is None in a causal layer."""
        logits = self.to_offsets(x)
        # Rounding an offset to half precision would move the window's edge by tenths of a token.
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        offsets = self.offset_dropout(logits.sigmoid())
        if self.causal:
            return offsets, None
        left, right = offsets.chunk(2, dim=-1)
        return left, right

    def _mix(self, x: Tensor, lengths: Tensor | None, padding_mask: Tensor | None) -> Tensor:
        return self._convolve(zero_padding(x, padding_mask), lengths=lengths)

    def _mix_packed(self, x: Tensor, cu_seqlens: Tensor) -> Tensor:
        return self._convolve(x, cu_seqlens=cu_seqlens)

    def _convolve(
        self, x: Tensor, *, lengths: Tensor | None = None, cu_seqlens: Tensor | None = None
    ) -> Tensor:
        left, right = self.offsets(x)
        return talk_conv(
            x,
            left,
            right,
            l_max=self.l_max,
            r_max=self.r_max,
            max_offset=self.max_offset,
            normalize=self.normalize,
            lengths=lengths,
            cu_seqlens=cu_seqlens,
        )

    def _step(
        self, x: Tensor, padding_mask: Tensor | None, state: TaLKState
    ) -> tuple[Tensor, TaLKState]:
        # autocast gives x in half precision, and states have the precision of the parameters
        x = zero_padding(x, padding_mask).to(state.tokens.dtype)
        left, _ = self.offsets(x)
        return talk_conv_step(x, left, state, normalize=self.normalize)

    def extra_repr(self) -> str:
        return f"{self.dim}, heads={self.heads}, l_max={self.l_max}, r_max={self.r_max}"
