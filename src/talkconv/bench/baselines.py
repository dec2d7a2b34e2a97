"""The operations that TaLK convolutions are measured against, each on its favourite layout.

q, k, v are (B, H, T, R). DynamicConv's weights (B, T, H, K) come softmaxed already.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def eager_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    out: Tensor = scores.softmax(-1) @ v
    return out


def fused_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def dynamic_conv_band(x: Tensor, weights: Tensor) -> Tensor:
    """The weights as a band matrix (T, T) per head: x (B, T, C), O(T^2) memory."""
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
    """Every token beside its K neighbours: x (B, T, C), O(K T C) memory."""
    B, T, C = x.shape
    H, K = weights.shape[2:]
    padded = F.pad(x, (0, 0, K // 2, K - 1 - K // 2))
    windows = padded.unfold(1, K, 1).reshape(B * T * H, C // H, K)
    return (windows @ weights.reshape(B * T * H, K, 1)).view(B, T, C)


def dynamic_conv_shift(x: Tensor, weights: Tensor) -> Tensor:
    """One pass over x per tap: x (B, T, C), no large buffer. Neither of the two published ways."""
    B, T, C = x.shape
    H, K = weights.shape[2:]
    padded = F.pad(x, (0, 0, K // 2, K - 1 - K // 2)).view(B, T + K - 1, H, C // H)
    out = padded[:, :T] * weights[..., :1]
    for tap in range(1, K):
        out = torch.addcmul(out, padded[:, tap : tap + T], weights[..., tap : tap + 1])
    return out.view(B, T, C)


def depthwise_conv(x: Tensor, weight: Tensor) -> Tensor:
    """x (B, C, T) with one fixed kernel per channel, weight (C, 1, K)."""
    return F.conv1d(x, weight, padding=weight.shape[-1] // 2, groups=x.shape[1])
