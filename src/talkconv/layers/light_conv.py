"""LightConv: one kernel per head, the same for all tokens (Wu et al., 2019)."""

import torch
from torch import Tensor, nn

from talkconv.layers.kernel_conv import KernelConv
from talkconv.network_settings import NetworkSettings


class LightConv(KernelConv):
    """Lightweight convolution: x (B, T, dim) -> (B, T, dim).

    >>> LightConv(8, heads=2, kernel_size=3)(torch.randn(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        kernel_size: int,
        *,
        causal: bool = False,
        weight_dropout: float = NetworkSettings.weight_dropout,
    ) -> None:
        super().__init__(dim, heads, kernel_size, causal=causal, weight_dropout=weight_dropout)
        self.weight = nn.Parameter(torch.empty(heads, 1, kernel_size))
        nn.init.xavier_uniform_(self.weight)

    def kernels(self, x: Tensor) -> Tensor:
        weights: Tensor = self.weight_dropout(self.weight.squeeze(1).softmax(dim=-1))
        return weights.to(x.dtype)
