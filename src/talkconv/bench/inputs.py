"""The inputs of a measurement: its sizes, its tensors, and what is run on them."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from talkconv.bench.measure import Run

FORWARD, TRAINING = "forward", "forward + backward"
DIRECTIONS = (FORWARD, TRAINING)
# Longer inputs repeat this many random tokens, because drawing gigabytes takes too long.
_MOST_DRAWN = 10_000


@dataclass(frozen=True)
class Setting:
    """The sizes of an input; the defaults are those of the paper's table of throughput."""

    n: int
    batch: int = 10
    dim: int = 1024
    heads: int = 16
    # tokens on each side that a window may reach
    reach: int = 31
    dtype: torch.dtype = torch.float32

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        sizes = f"batch {self.batch}, d {self.dim}, {self.heads} heads"
        return f"{sizes}, l_max = r_max = {self.reach}, {dtype}"


class Inputs:
    """The tensors of a setting. Each is made when it is first asked for, and then shared."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._kernels: dict[int, Tensor] = {}

    def noise(self, *shape: int, tokens: int) -> Tensor:
        """Return normal noise whose axis `tokens` has the length of the sequence."""
        n = self.setting.n
        drawn = list(shape)
        drawn[tokens] = min(n, _MOST_DRAWN)
        noise = torch.randn(drawn, dtype=self.setting.dtype)
        if n <= _MOST_DRAWN:
            return noise
        times = [1] * len(shape)
        times[tokens] = -(-n // _MOST_DRAWN)
        return noise.repeat(times).narrow(tokens, 0, n).contiguous()

    @functools.cached_property
    def x(self) -> Tensor:
        """Return the tokens, (B, T, C)."""
        s = self.setting
        return self.noise(s.batch, s.n, s.dim, tokens=1)

    @functools.cached_property
    def offsets(self) -> tuple[Tensor, Tensor]:
        """Return the offsets of TaLK to the left and to the right, (B, T, H) each."""
        s = self.setting
        left, right = offsets_between_tokens((2, s.batch, s.n, s.heads), s.reach).to(s.dtype)
        return left, right

    @functools.cached_property
    def qkv(self) -> tuple[Tensor, ...]:
        """Return queries, keys and values, (B, H, T, R) each."""
        s = self.setting
        shape = s.batch, s.heads, s.n, s.dim // s.heads
        return tuple(self.noise(*shape, tokens=2) for _ in range(3))

    @functools.cached_property
    def channels_first(self) -> Tensor:
        """Return tokens as convolutions of torch take them, (B, C, T)."""
        s = self.setting
        return self.noise(s.batch, s.dim, s.n, tokens=2)

    @functools.cached_property
    def time_first(self) -> Tensor:
        """Return tokens as an LSTM likes them best, (T, B, C)."""
        s = self.setting
        return self.noise(s.n, s.batch, s.dim, tokens=0)

    def kernels(self, taps: int) -> Tensor:
        """Return the weights of a DynamicConv, (B, T, H, K)."""
        if taps not in self._kernels:
            s = self.setting
            self._kernels[taps] = self.noise(s.batch, s.n, s.heads, taps, tokens=1).softmax(-1)
        return self._kernels[taps]

    def shared_kernel(self, taps: int) -> Tensor:
        """Return the weights of a LightConv, (H, K)."""
        return torch.randn(self.setting.heads, taps, dtype=self.setting.dtype).softmax(-1)


def offsets_between_tokens(
    shape: tuple[int, ...], reach: int, generator: torch.Generator | None = None
) -> Tensor:
    """Return random offsets whose reach in tokens is not an integer.

    The derivative of TaLK jumps where the reach is an integer, so gradients cannot be compared
    there.
    """
    tokens = torch.rand(shape, generator=generator) * reach
    return (tokens.floor() + 0.1 + 0.8 * tokens.frac()).clamp(max=reach - 0.1) / reach


@dataclass(frozen=True)
class Contestant:
    """A function of tensors. Training computes the gradients of all of them."""

    function: Callable[..., Tensor]
    tensors: tuple[Tensor, ...]
    # what the function must compute from the same tensors
    definition: Callable[..., Tensor]

    def forward(self) -> Tensor:
        """Call the function on its tensors."""
        return self.function(*self.tensors)

    def with_backward(self) -> Run:
        """Return a run of the function and of its gradients to all tensors."""
        leaves = tuple(tensor.detach().requires_grad_() for tensor in self.tensors)
        # The output of every contestant has the shape of its first tensor.
        grad = self.tensors[0].flip(0)

        def run() -> tuple[Tensor, ...]:
            return torch.autograd.grad(self.function(*leaves), leaves, grad)

        return run

    def run(self, direction: str) -> Run:
        """Return what is timed for one of DIRECTIONS."""
        return self.forward if direction == FORWARD else self.with_backward()
