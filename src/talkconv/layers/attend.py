"""Softmax attention of queries over keys and values. Self- and cross-attention share it."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from talkconv.ops.dropout import dropout


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    dropout_p: float = 0.0,
) -> Tensor:
    """Attend: queries (B, H, T, R), keys and values (B, H, S, R) -> (B, H, T, R).

    `mask` broadcasts to (B, H, T, S) and is True where a query may look. PyTorch has no fused
    attention with dropout on a CPU. There we compute the attention step by step with our own
    dropout, which is faster than PyTorch's fallback.
    """
    if dropout_p == 0 or not queries.is_cpu:
        return F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, dropout_p=dropout_p, is_causal=is_causal
        )
    scores = (queries / math.sqrt(queries.shape[-1])) @ keys.transpose(-2, -1)  # (B, H, T, S)
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        # With -inf, a query that may look nowhere would get NaN. Its output is never used.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    out: Tensor = dropout(scores.softmax(dim=-1), dropout_p) @ values
    return out
