"""Whether what is about to be measured computes what it should: outputs and gradients.

A benchmark of something wrong says nothing, so the commands refuse to measure on red.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from talkconv.bench.inputs import Contestant, Inputs, Setting
from talkconv.bench.methods import Method

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
    """Compare each method with its definition on a small input."""
    torch.manual_seed(0)
    setting = Setting(SMALL.n, SMALL.batch, SMALL.dim, SMALL.heads, SMALL.reach, dtype)
    inputs = Inputs(setting)
    return [_check(method, inputs) for method in methods]


def _check(method: Method, inputs: Inputs) -> Finding:
    try:
        contestant = method.make(inputs)
        error = output_error(contestant)
        if method.trains:
            error = max(error, gradient_error(contestant))
    except (RuntimeError, NotImplementedError) as problem:
        # This dtype has no kernel here, or torch.compile finds no compiler.
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        return Finding(method.name, is_right=False, runs=False, why=reason)
    limit = TOLERANCE[inputs.setting.dtype]
    # A comparison with NaN is false, so NaN is wrong too.
    is_right = error <= limit
    why = "" if is_right else f"it is off by {error:.1e} of the largest value, allowed {limit:.0e}"
    return Finding(method.name, is_right, why=why)


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
