"""Mixers by name with random parameters, and a comparison with tolerances."""

import torch
from torch import Tensor, nn

from talkconv.layers import Mixer, make_mixer

DIM, HEADS = 12, 3

# Two ways through the same float32 layer differ by a few roundings of numbers around 1.
TOLERANCE = 2e-6


def random_parameters(module: nn.Module, seed: int = 0) -> nn.Module:
    """Draw all parameters at random, so that a test fails if code ignores a bias or a weight."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.4
    return module.eval()


def random_mixer(kind: str, l_max: int = 4, r_max: int = 0, **options) -> Mixer:
    return random_parameters(make_mixer(kind, DIM, HEADS, l_max, r_max, **options))


def random_tokens(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, DIM, generator=torch.Generator().manual_seed(seed))


def assert_same(actual: Tensor, expected: Tensor, tolerance: float = TOLERANCE) -> None:
    assert actual.shape == expected.shape, f"{actual.shape} instead of {expected.shape}"
    wrong = (actual - expected).abs().max().item() if actual.numel() else 0.0
    assert wrong <= tolerance, f"off by {wrong:.3g}, allowed {tolerance:.3g}"


def no_onednn():
    """Turn oneDNN off. It may use bfloat16 instructions that a virtual machine cannot run."""
    return torch.backends.mkldnn.flags(enabled=False)
