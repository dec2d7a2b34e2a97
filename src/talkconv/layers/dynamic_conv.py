"""DynamicConv: each token predicts the kernels of its heads (Wu et al., 2019)."""

from torch import Tensor, nn

from talkconv.layers.kernel_conv import KernelConv
from talkconv.layers.mixer import init_linear
from talkconv.network_settings import NetworkSettings


class DynamicConv(KernelConv):
    """Dynamic convolution: x (B, T, dim) -> (B, T, dim).

    >>> DynamicConv(8, heads=2, kernel_size=3)(torch.randn(1, 5, 8)).shape
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
        self.to_kernels = init_linear(nn.Linear(dim, heads * kernel_size, bias=False))

    def kernels(self, x: Tensor) -> Tensor:
        logits = self.to_kernels(x).unflatten(-1, (self.heads, self.kernel_size))
        weights: Tensor = self.weight_dropout(logits.softmax(dim=-1))
        return weights.to(x.dtype)
