"""The definition of the operation, dense and slow. Every kernel is tested against it.

It uses the weights of the windows and not running sums, so that it cannot share a kernel's mistake.
It takes O(T^2) memory and is meant for tests and for reading.
"""

import torch
from torch import Tensor


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
    """Sum x (B, T, C) over the window of each token and head, by its dense weights.

    >>> x = torch.arange(1.0, 6.0).view(1, 5, 1)
    >>> half = torch.full((1, 5, 1), 0.5)
    >>> talk_conv(x, half, half, l_max=1, r_max=1, normalize=False).flatten()
    tensor([2., 4., 6., 8., 7.])
    """
    if cu_seqlens is not None:
        ends = cu_seqlens.tolist()
        out = torch.empty_like(x)
        for one in map(slice, ends, ends[1:]):
            out[one] = talk_conv(
                x[None, one],
                None if left is None else left[None, one],
                None if right is None else right[None, one],
                l_max=l_max,
                r_max=r_max,
                max_offset=max_offset,
                normalize=normalize,
            )[0]
        return out

    B, T, C = x.shape
    weights = window_weights(left, right, T, l_max=l_max, r_max=r_max, max_offset=max_offset)
    if lengths is not None:
        exists = torch.arange(T, device=x.device) < lengths[:, None]  # (B, T)
        weights = weights * exists[:, None, :, None] * exists[:, :, None, None]
        x = x.masked_fill(~exists[..., None], 0)
    H = weights.shape[-1]
    scale = 1 / (l_max + r_max + 1) if normalize else 1.0
    wide = torch.promote_types(x.dtype, torch.float32)
    heads = x.to(wide).reshape(B, T, H, C // H)
    out = torch.einsum("bijh,bjhr->bihr", weights.to(wide), heads)
    return (scale * out).reshape(B, T, C).to(x.dtype)


def window_weights(
    left: Tensor | None,
    right: Tensor | None,
    tokens: int,
    *,
    l_max: int,
    r_max: int,
    max_offset: float = 1.0,
) -> Tensor:
    """Return the weight of token j in the window of token i: (B, T, T, H), indexed [b, i, j, h]."""
    offsets = left if left is not None else right
    assert offsets is not None, "a window needs at least one side"
    wide = torch.promote_types(offsets.dtype, torch.float32)
    positions = torch.arange(tokens, device=offsets.device)
    distance = (positions[:, None] - positions[None, :])[None, :, :, None]  # i - j

    def side(offset: Tensor | None, tokens_max: int, away: Tensor) -> Tensor:
        if offset is None:
            return (1 - away).clamp(0, 1).to(wide)
        reach = offset.to(wide).clamp(0, max_offset)[:, :, None, :] * tokens_max  # (B, T, 1, H)
        return (1 + reach - away).clamp(0, 1)

    before = side(left, l_max, distance)
    after = side(right, r_max, -distance)
    return torch.where(distance >= 0, before, after)
