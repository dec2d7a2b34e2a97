"""Checks outputs and gradients of the contestants before they are measured.

The time of a wrong computation means nothing, so the commands do not measure if a check fails.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from talkconv.bench.inputs import Contestant, Inputs, Setting
from talkconv.bench.methods import Make, Method

# The largest error, as a share of the largest value of the definition in float64.
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}
# Longer than the widest kernel of the methods, and no multiple of any block.
SMALL = Setting(n=37, batch=2, dim=64, heads=4, reach=5)


@dataclass(frozen=True)
class Finding:
    """The result of one check: right, wrong, or not able to run on this machine."""

    name: str
    is_right: bool
    runs: bool = True
    why: str = ""


def check_methods(methods: Iterable[Method], dtype: torch.dtype) -> list[Finding]:
    """Compare each method, and its gradients, with its definition on a small input."""
    torch.manual_seed(0)
    inputs = Inputs(replace(SMALL, dtype=dtype))
    return [_check(each.name, each.make, inputs, trains=each.trains) for each in methods]


def check_contestants(makes: Mapping[str, Make]) -> list[Finding]:
    """Compare the outputs of contestants with their definitions on a small input."""
    torch.manual_seed(0)
    inputs = Inputs(SMALL)
    return [_check(name, make, inputs, trains=False) for name, make in makes.items()]


def _check(name: str, make: Make, inputs: Inputs, *, trains: bool) -> Finding:
    try:
        contestant = make(inputs)
        error = output_error(contestant)
        if trains:
            error = max(error, gradient_error(contestant))
    except (RuntimeError, NotImplementedError) as problem:
        # This dtype has no kernel here, or torch.compile finds no compiler.
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        return Finding(name, is_right=False, runs=False, why=reason)
    return judged(name, error, inputs.setting.dtype)


def judged(name: str, error: float, dtype: torch.dtype) -> Finding:
    """Return whether an error, as a share of the largest value, is small enough for a dtype."""
    limit = TOLERANCE[dtype]
    # A comparison with NaN is false, so NaN is wrong too.
    is_right = error <= limit
    why = "" if is_right else f"it is off by {error:.1e} of the largest value, allowed {limit:.0e}"
    return Finding(name, is_right, why=why)


def output_error(contestant: Contestant) -> float:
    """Return the largest error of the output as a share of its largest value."""
    exact = contestant.definition(*(tensor.double() for tensor in contestant.tensors))
    return relative_error(contestant.forward(), exact)


def gradient_error(contestant: Contestant) -> float:
    """Return the largest error of any gradient as a share of its largest value."""
    leaves = [tensor.detach().requires_grad_() for tensor in contestant.tensors]
    out = contestant.function(*leaves)
    grad = torch.randn_like(out)
    found = torch.autograd.grad(out, leaves, grad)
    doubles = [tensor.detach().double().requires_grad_() for tensor in contestant.tensors]
    exact = torch.autograd.grad(contestant.definition(*doubles), doubles, grad.double())
    return max(relative_error(*pair) for pair in zip(found, exact, strict=True))


def relative_error(found: Tensor, exact: Tensor) -> float:
    """Return the largest difference as a share of the largest exact value."""
    return float((found.double() - exact).abs().max() / exact.abs().max())


def refuse_on_red(findings: Iterable[Finding]) -> None:
    """Raise a ValueError that names every contestant that computes something wrong."""
    wrong = [f"{each.name}: {each.why}" for each in findings if each.runs and not each.is_right]
    if wrong:
        raise ValueError(
            "contestants must compute what their definitions say before they are measured:\n"
            + "\n".join(wrong)
        )
