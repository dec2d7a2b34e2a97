"""The operations that TaLK convolutions are compared with, each in the layout that suits it.

q, k, v are (B, H, T, R). The weights of a DynamicConv (B, T, H, K) and of a LightConv (H, K) are
given after their softmax. definitions.py says what each of them must compute.
"""

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Tokens in a block of window attention, unless the window is wider.
_LEAST_BLOCK = 32
# The block size that FlexAttention is tuned for.
_FLEX_BLOCK = 128


def eager_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute softmax(q k^T / sqrt(R)) v as the formula says, with a table (T, T) for each head."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    out: Tensor = scores.softmax(-1) @ v
    return out


def fused_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute attention with PyTorch's fused kernel, which needs no table."""
    return F.scaled_dot_product_attention(q, k, v)


def window_attention(q: Tensor, k: Tensor, v: Tensor, *, reach: int) -> Tensor:
    """Let each token attend to `reach` tokens on each side, in blocks of queries: O(T reach)."""
    B, H, T, R = q.shape
    block = max(_LEAST_BLOCK, reach)
    n = -(-T // block)
    width = block + 2 * reach
    queries = F.pad(q, (0, 0, 0, n * block - T)).view(B, H, n, block, R)
    around = (0, 0, reach, n * block - T + reach)
    keys = F.pad(k, around).unfold(2, width, block)  # (B, H, n, R, width)
    values = F.pad(v, around).unfold(2, width, block)
    scores = queries @ keys * R**-0.5  # (B, H, n, block, width)
    offset = torch.arange(width) - reach  # the position of a key, from its block's first query
    token = torch.arange(n)[:, None] * block + offset
    exists = (token >= 0) & (token < T)  # (n, width)
    near = (offset - torch.arange(block)[:, None]).abs() <= reach  # (block, width)
    # Queries that only fill the last block may see padding, because a softmax of nothing is NaN.
    filling = (torch.arange(n * block) >= T).view(n, block, 1)
    sees = near & (exists[:, None] | filling)
    weights = scores.masked_fill(~sees, float("-inf")).softmax(-1)
    out: Tensor = weights @ values.transpose(-1, -2)
    return out.reshape(B, H, n * block, R)[:, :, :T]


@functools.cache
def _compiled_flex_attention() -> Callable[..., Tensor]:
    from torch.nn.attention.flex_attention import flex_attention  # slow to import, rarely needed

    compiled: Callable[..., Tensor] = torch.compile(flex_attention, dynamic=True)
    return compiled


def flex_attention(q: Tensor, k: Tensor, v: Tensor, mask: object) -> Tensor:
    """Compute window attention with a kernel of torch.compile. A CPU has only the forward."""
    return _compiled_flex_attention()(q, k, v, block_mask=mask)


def window_mask(T: int, reach: int) -> object:
    """Return FlexAttention's mask of a window. It is made block by block to save memory."""
    from torch.nn.attention.flex_attention import BlockMask

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (query - key).abs() <= reach

    n = -(-T // _FLEX_BLOCK)
    side = -(-reach // _FLEX_BLOCK)
    first = (torch.arange(n) - side).clamp(min=0)
    last = (torch.arange(n) + side).clamp(max=n - 1)
    # Columns after the number of blocks are ignored, but must exist.
    columns = (first[:, None] + torch.arange(n)).clamp(max=n - 1)
    return BlockMask.from_kv_blocks(
        (last - first + 1).int()[None, None],
        columns.int()[None, None],
        BLOCK_SIZE=_FLEX_BLOCK,
        mask_mod=sees,
        seq_lengths=(T, T),
    )


def dynamic_conv_band(x: Tensor, weights: Tensor) -> Tensor:
    """Write the weights into a band matrix (T, T) per head: x (B, T, C), O(T^2) memory."""
    B, T, C = x.shape
    H, K = weights.shape[2:]
    per_head = weights.transpose(1, 2).reshape(B * H, T, K)
    band = x.new_zeros(B * H, T, T + K - 1)
    diagonal = band.as_strided((B * H, T, K), (T * (T + K - 1), T + K, 1))
    diagonal.copy_(per_head)
    heads = x.view(B, T, H, C // H).transpose(1, 2).reshape(B * H, T, C // H)
    out = band[:, :, K // 2 : K // 2 + T] @ heads
    return out.view(B, H, T, C // H).transpose(1, 2).reshape(B, T, C)


def dynamic_conv_unfold(x: Tensor, weights: Tensor) -> Tensor:
    """Copy every token's K neighbours beside it: x (B, T, C), O(K T C) memory."""
    B, T, C = x.shape
    H, K = weights.shape[2:]
    padded = F.pad(x, (0, 0, K // 2, K - 1 - K // 2))
    windows = padded.unfold(1, K, 1).reshape(B * T * H, C // H, K)
    return (windows @ weights.reshape(B * T * H, K, 1)).view(B, T, C)


def dynamic_conv_shift(x: Tensor, weights: Tensor) -> Tensor:
    """Read x (B, T, C) once per tap, without a large buffer. No publication has this variant."""
    B, T, C = x.shape
    H, K = weights.shape[2:]
    padded = F.pad(x, (0, 0, K // 2, K - 1 - K // 2)).view(B, T + K - 1, H, C // H)
    out = padded[:, :T] * weights[..., :1]
    for tap in range(1, K):
        out = torch.addcmul(out, padded[:, tap : tap + T], weights[..., tap : tap + 1])
    return out.view(B, T, C)


def light_conv_grouped(x: Tensor, weights: Tensor) -> Tensor:
    """Convolve x (B, C, T) with one kernel a head as a grouped convolution of H channels."""
    B, C, T = x.shape
    H, K = weights.shape
    heads = x.view(B, H, C // H, T).transpose(1, 2).reshape(B * C // H, H, T)
    out = F.conv1d(heads, weights[:, None], padding=K // 2, groups=H)
    return out.view(B, C // H, H, T).transpose(1, 2).reshape(B, C, T)


def depthwise_conv(x: Tensor, weight: Tensor) -> Tensor:
    """Convolve x (B, C, T) with one fixed kernel per channel, weight (C, 1, K)."""
    return F.conv1d(x, weight, padding=weight.shape[-1] // 2, groups=x.shape[1])


def full_conv(x: Tensor, weight: Tensor) -> Tensor:
    """Convolve x (B, C, T) with weight (C, C, K), which mixes all channels."""
    return F.conv1d(x, weight, padding=weight.shape[-1] // 2)


def lstm(module: nn.LSTM, x: Tensor, *parameters: Tensor) -> Tensor:
    """Run a torch.nn.LSTM of one layer with these parameters over x (T, B, C)."""
    names = (name for name, _ in module.named_parameters())
    named = dict(zip(names, parameters, strict=True))
    out: Tensor = torch.func.functional_call(module, named, (x,))[0]
    return out
