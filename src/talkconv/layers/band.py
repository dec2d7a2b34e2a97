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


def convolve(stream: Tensor, kernels: Tensor) -> Tensor:
    """out[i] = sum over k of kernels[.., k] * stream[i + k]: (B, T + K - 1, C) -> (B, T, C).

    `stream` holds what comes before and after the T tokens. kernels (H, K) are the same for all
    tokens, kernels (B, T, H, K) change from token to token.
    """
    H, K = kernels.shape[-2:]
    B, rows, C = stream.shape
    T = rows - (K - 1)
    block = min(T, max(BLOCK, K))
    n = -(-T // block)
    blocks = _blocks(stream, n, block, K - 1).unflatten(-1, (H, -1))  # (B, n, W, H, R)
    if kernels.dim() == 2:
        band = _band(kernels[:, None].expand(H, block, K))  # (H, block, W)
        out = torch.einsum("hiw,bnwhr->bnihr", band, blocks)
    else:
        kernels = F.pad(kernels, (0, 0, 0, 0, 0, n * block - T)).unflatten(1, (n, block))
        band = _band(kernels.transpose(2, 3))  # (B, n, H, block, W)
        out = (band @ blocks.transpose(2, 3)).transpose(2, 3)
    return out.reshape(B, n * block, C)[:, :T]


def _blocks(stream: Tensor, n: int, block: int, reach: int) -> Tensor:
    """(B, rows, C) -> (B, n, block + reach, C): each block and what follows, reach <= block."""
    if n == 1:
        return stream[:, None]
    stream = F.pad(stream, (0, 0, 0, (n + 1) * block - stream.shape[1]))
    tokens = stream.unflatten(1, (n + 1, block))
    return torch.cat((tokens[:, :-1], tokens[:, 1:, :reach]), dim=2)


def _band(kernels: Tensor) -> Tensor:
    """(..., S, K) -> (..., S, S + K - 1): row i holds its kernel from column i on, else zeros."""
    S, K = kernels.shape[-2:]
    # rows one longer than the band's: read as the band's rows, each starts one column later
    longer = F.pad(kernels, (0, S)).flatten(-2)
    band: Tensor = longer[..., : S * (S + K - 1)].unflatten(-1, (S, S + K - 1))
    return band
