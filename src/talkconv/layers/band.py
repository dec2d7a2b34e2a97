"""Convolution with a separate kernel for each head, or for each token and head.

The kernels are written into band matrices, so that matrix products do the work. The sequence is
divided into blocks of tokens, so that memory grows only linearly with its length.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

# Tokens of a block, unless the kernel is wider. Smaller blocks spend more of the product on the
# tokens after a block, larger ones spend more of it on the zeros of the band.
BLOCK = 32


def convolve(x: Tensor, kernels: Tensor, *, before: int = 0, after: int = 0) -> Tensor:
    """Convolve: out[i] = sum over k of kernels[.., k] * x[i + k - before].

    x (B, rows, C) -> (B, T, C) with T = before + rows + after - (K - 1). x is padded with `before`
    and `after` zeros. kernels (H, K) are the same for all tokens, and kernels (B, T, H, K) differ
    from token to token.
    """
    H, K = kernels.shape[-2:]
    B, rows, C = x.shape
    T = before + rows + after - (K - 1)
    block = min(T, max(BLOCK, K))
    n = -(-T // block)
    width = block + K - 1
    # The last block, too, needs tokens after it, so there is one block more than n.
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
    """Return each block with the `reach` tokens after it, where reach <= block.

    (B, rows, C) -> (B, n, block + reach, C)
    """
    if x.shape[1] == block + reach:
        return x[:, None]
    tokens = x.unflatten(1, (-1, block))
    return torch.cat((tokens[:, :-1], tokens[:, 1:, :reach]), dim=2)


def _band(kernels: Tensor) -> Tensor:
    """Write kernels into a band matrix: row i holds its kernel from column i on, and zeros.

    (..., S, K) -> (..., S, S + K - 1)
    """
    S, K = kernels.shape[-2:]
    # Pad the rows to be one longer than the band's rows. When the memory is then read in rows of
    # the band's length, each row starts one column later than the row before.
    longer = F.pad(kernels, (0, S)).flatten(-2)
    band: Tensor = longer[..., : S * (S + K - 1)].unflatten(-1, (S, S + K - 1))
    return band
