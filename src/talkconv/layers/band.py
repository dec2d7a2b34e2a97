"""Convolution with a kernel of its own for each head, or for each token and head.

Kernels become band matrices, so that matrix products do the work; over blocks of tokens, so that
memory stays linear in the length of a sequence.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

# Tokens a block, unless the kernel is wider. Fewer waste products on what follows a block, more on
# the zeros of the band.
BLOCK = 32


def convolve(x: Tensor, kernels: Tensor, *, before: int = 0, after: int = 0) -> Tensor:
    """out[i] = sum over k of kernels[.., k] * x[i + k - before]: (B, rows, C) -> (B, T, C).

    T = before + rows + after - (K - 1), x being 0 in the `before` and `after` tokens around it.
    kernels (H, K) are the same for all tokens, kernels (B, T, H, K) change from token to token.
    """
    H, K = kernels.shape[-2:]
    B, rows, C = x.shape
    T = before + rows + after - (K - 1)
    block = min(T, max(BLOCK, K))
    n = -(-T // block)
    width = block + K - 1
    # room for n blocks, and for a last one to take what follows from
    total = width if n == 1 else (n + 1) * block
    x = F.pad(x, (0, 0, before, total - before - rows))
    blocks = _blocks(x, block, K - 1).unflatten(-1, (H, -1))  # (B, n, width, H, R)
    if kernels.dim() == 2:
        band = _band(kernels[:, None].expand(H, block, K))  # (H, block, width)
        out = torch.einsum("hiw,bnwhr->bnihr", band, blocks)
    else:
        if n * block > T:
            kernels = F.pad(kernels, (0, 0, 0, 0, 0, n * block - T))
        band = _band(kernels.unflatten(1, (n, block)).transpose(2, 3))  # (B, n, H, block, width)
        out = (band @ blocks.transpose(2, 3)).transpose(2, 3)
    return out.reshape(B, n * block, C)[:, :T]


def _blocks(x: Tensor, block: int, reach: int) -> Tensor:
    """(B, rows, C) -> (B, n, block + reach, C): each block and what follows, reach <= block."""
    if x.shape[1] == block + reach:
        return x[:, None]
    tokens = x.unflatten(1, (-1, block))
    return torch.cat((tokens[:, :-1], tokens[:, 1:, :reach]), dim=2)


def _band(kernels: Tensor) -> Tensor:
    """(..., S, K) -> (..., S, S + K - 1): row i holds its kernel from column i on, else zeros."""
    S, K = kernels.shape[-2:]
    # rows one longer than the band's: read as the band's rows, each starts one column later
    longer = F.pad(kernels, (0, S)).flatten(-2)
    band: Tensor = longer[..., : S * (S + K - 1)].unflatten(-1, (S, S + K - 1))
    return band
