"""Random inputs and the one tolerance table that all tests of the operation share."""

from dataclasses import dataclass

import torch
from torch import Tensor

from talkconv import reference

# Largest error against the float64 definition, as (relative, absolute), for x of mean 1 and
# deviation 1. float32: a few roundings of the result, whatever the length; halves: one rounding.
TOLERANCES = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (1e-6, 1e-6),
    torch.bfloat16: (2**-8, 1e-6),
    torch.float16: (2**-11, 1e-6),
}


@dataclass
class Case:
    x: Tensor
    left: Tensor
    right: Tensor
    settings: dict

    def doubles(self) -> "Case":
        """Return the same numbers in float64, as arguments of the definition."""
        return Case(self.x.double(), self.left.double(), self.right.double(), self.settings)

    def leaves(self) -> tuple[Tensor, Tensor, Tensor]:
        tensors = (self.x, self.left, self.right)
        return tuple(tensor.detach().clone().requires_grad_() for tensor in tensors)


def make_case(
    B: int = 2,
    T: int = 13,
    C: int = 12,
    H: int = 3,
    *,
    l_max: int = 4,
    r_max: int = 3,
    dtype: torch.dtype = torch.float32,
    offset_dtype: torch.dtype | None = None,
    max_offset: float = 1.0,
    seed: int = 0,
    **settings,
) -> Case:
    """Make x of mean 1 and deviation 1, and offsets whose reach is not near an integer."""
    generator = torch.Generator().manual_seed(seed)
    shape = (T,) if "cu_seqlens" in settings else (B, T)
    x = 1 + torch.randn(*shape, C, generator=generator, dtype=torch.float64)
    offset_dtype = offset_dtype or dtype

    def offsets(reach: int) -> Tensor:
        values = torch.rand(*shape, H, generator=generator, dtype=torch.float64) * max_offset
        tokens = values * max(reach, 1)
        # below the clamp, and not by a round number of tokens
        tokens = tokens.clamp(max=max(reach, 1) * max_offset - 0.123)
        tokens = tokens.floor() + (tokens - tokens.floor()) * 0.8 + 0.1
        rounded = (tokens / max(reach, 1)).clamp(0, max_offset).to(offset_dtype)
        # halves may be rounded onto an integer all the same; 0.37 of a reach below 512 never is one
        at_integer = (rounded.double() * max(reach, 1)).frac() == 0
        return torch.where(at_integer, rounded.new_tensor(0.37), rounded)

    return Case(
        x.to(dtype),
        offsets(l_max),
        offsets(r_max),
        dict(l_max=l_max, r_max=r_max, max_offset=max_offset, **settings),
    )


def exact(case: Case) -> Tensor:
    wide = case.doubles()
    return reference.talk_conv(wide.x, wide.left, wide.right, **wide.settings)


def exact_grads(case: Case, grad_out: Tensor) -> tuple[Tensor, ...]:
    leaves = case.doubles().leaves()
    out = reference.talk_conv(*leaves, **case.settings)
    return torch.autograd.grad(out, leaves, grad_out.double())


def assert_exact(actual: Tensor, expected: Tensor, what: str = "result") -> None:
    """Compare `actual` in its own dtype with `expected` in float64, by the table above."""
    assert expected.dtype == torch.float64
    assert actual.shape == expected.shape, f"{what}: {actual.shape} instead of {expected.shape}"
    relative, absolute = TOLERANCES[actual.dtype]
    allowed = absolute + relative * expected.abs()
    wrong = (actual.double() - expected).abs()
    worst = (wrong - allowed).max().item() if wrong.numel() else -1
    assert worst <= 0, f"{what} ({actual.dtype}): off by {wrong.max():.3g}, {worst:.3g} too much"
