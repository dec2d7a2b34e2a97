"""Sinusoidal positions, counted as in the authors' networks."""

import math

import torch
from torch import Tensor, nn


class SinusoidalPositions(nn.Module):
    """Adds to each token the sines and cosines of its position: x (B, T, dim) -> (B, T, dim).

    Sines stand in the first half of the channels, cosines in the second, with frequencies that fall
    geometrically. Tokens are counted from padding_idx + 1; padding is not counted and nothing is
    added to it. There is no table, so that a sequence may have any length.

    >>> SinusoidalPositions(8)(torch.zeros(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    def __init__(self, dim: int, padding_idx: int = 1) -> None:
        super().__init__()
        if dim < 4:
            raise ValueError(f"dim must be at least 4 to hold two frequencies, got {dim}")
        self.dim = dim
        self.padding_idx = padding_idx

    def forward(
        self, x: Tensor, *, start: int | Tensor = 0, padding_mask: Tensor | None = None
    ) -> Tensor:
        """Return x with its positions, in the dtype and on the device of x.

        `start` is the number of tokens before x without padding: one number, or one per row (B,).
        padding_mask (B, T) is True at padding.
        """
        if x.dim() != 3 or x.shape[-1] != self.dim:
            raise ValueError(f"x must be (B, T, dim) with dim = {self.dim}, got {tuple(x.shape)}")
        return x + self.values(
            x.shape[1], start=start, padding_mask=padding_mask, device=x.device, dtype=x.dtype
        )

    def values(
        self,
        tokens: int,
        *,
        start: int | Tensor = 0,
        padding_mask: Tensor | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """Return what forward() adds: (1, T, dim), or (B, T, dim) if the sequences differ."""
        if padding_mask is not None:
            if padding_mask.shape[1:] != (tokens,):
                raise ValueError(
                    f"padding_mask must be (B, T) with T = {tokens}, "
                    f"got {tuple(padding_mask.shape)}"
                )
            device = padding_mask.device
            index = (~padding_mask).cumsum(dim=1) - 1
        else:
            device = start.device if isinstance(start, Tensor) else device
            index = torch.arange(tokens, device=device)[None]
        first = start[:, None] if isinstance(start, Tensor) else start
        angles = (index + first + self.padding_idx + 1)[..., None] * self._frequencies(device)
        positions = torch.cat((angles.sin(), angles.cos()), dim=-1)
        if self.dim % 2:
            positions = nn.functional.pad(positions, (0, 1))
        if padding_mask is not None:
            positions = positions.masked_fill(padding_mask[..., None], 0)
        return positions.to(dtype)

    def _frequencies(self, device: torch.device | str | None) -> Tensor:
        """Return the frequencies (dim // 2,) from 1 down to 1/10000.

        They are not a buffer, because a network in half precision would round them.
        """
        half = self.dim // 2
        steps = torch.arange(half, dtype=torch.float32, device=device)
        return torch.exp(steps * -(math.log(10000) / (half - 1)))

    def extra_repr(self) -> str:
        return f"{self.dim}, padding_idx={self.padding_idx}"
