"""The definitions of the measured operations, written as simply as possible.

Each takes the same tensors as its operation in baselines.py. All of them are dense and slow.
"""

import torch
from torch import Tensor


def attention(
    q: Tensor, k: Tensor, v: Tensor, *, reach: int | None = None, causal: bool = False
) -> Tensor:
    """Attend to all tokens, to those at most `reach` away, or to none ahead: (B, H, T, R)."""
    T = q.shape[2]
    distance = torch.arange(T)[:, None] - torch.arange(T)
    hidden = distance.abs() > (T if reach is None else reach)
    if causal:
        hidden = hidden | (distance < 0)
    scores = torch.einsum("bhir,bhjr->bhij", q, k) / q.shape[-1] ** 0.5
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    return torch.einsum("bhij,bhjr->bhir", weights, v)


def dynamic_conv(x: Tensor, weights: Tensor, *, before: int | None = None) -> Tensor:
    """Sum over taps: x (B, T, C), weights (B, T, H, K).

    Tap `before` is the token itself; it is K // 2 unless given.
    """
    B, T, C = x.shape
    H, K = weights.shape[2:]
    before = K // 2 if before is None else before
    heads = x.view(B, T, H, C // H)
    out = torch.zeros_like(heads)
    for token in range(T):
        for tap in range(K):
            other = token + tap - before
            if 0 <= other < T:
                weight = weights[:, token, :, tap, None]
                out[:, token] = out[:, token] + weight * heads[:, other]
    return out.view(B, T, C)


def light_conv(x: Tensor, weights: Tensor) -> Tensor:
    """Apply the same weights (H, K) to every token of x (B, T, C)."""
    B, T, _ = x.shape
    return dynamic_conv(x, weights.expand(B, T, *weights.shape))


def light_conv_channels_first(x: Tensor, weights: Tensor) -> Tensor:
    """Apply the same weights (H, K) to every token of x (B, C, T)."""
    return light_conv(x.transpose(1, 2), weights).transpose(1, 2)


def depthwise_conv(x: Tensor, weight: Tensor) -> Tensor:
    """Apply one kernel per channel, weight (C, 1, K), to x (B, C, T): as many heads as channels."""
    return light_conv_channels_first(x, weight[:, 0])


def full_conv(x: Tensor, weight: Tensor) -> Tensor:
    """Convolve x (B, C, T) with weight (C, C, K), one tap after the other."""
    T, K = x.shape[-1], weight.shape[-1]
    out = torch.zeros_like(x)
    for token in range(T):
        for tap in range(K):
            other = token + tap - K // 2
            if 0 <= other < T:
                out[..., token] = out[..., token] + x[..., other] @ weight[..., tap].T
    return out


def lstm(x: Tensor, *parameters: Tensor) -> Tensor:
    """Run the cell of an LSTM over x (T, B, C); gates in torch's order: in, forget, cell, out."""
    from_input, from_hidden, bias_input, bias_hidden = parameters
    hidden = cell = torch.zeros_like(x[0])
    outputs = []
    for token in x:
        gates = token @ from_input.T + bias_input + hidden @ from_hidden.T + bias_hidden
        enter, forget, new, leave = gates.chunk(4, dim=-1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
        hidden = leave.sigmoid() * cell.tanh()
        outputs.append(hidden)
    return torch.stack(outputs)
