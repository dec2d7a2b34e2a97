"""Plans calls on CPU tensors, compiles their kernels for an A100, and runs the compiled PTX.

Triton cannot compile in a process in which it interprets: tests/ops/compiler.py has another one.
"""

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from talkconv.ops import gpu_plans
from talkconv.ops.gpu_steps import Launch
from tests.cases import Case, make_case
from tests.ops.compiler import compiling
from tests.ops.ptx.machine import Machine, Memory
from tests.ops.ptx.syntax import Kernel

# beyond 32 bits, so that an address which lost its high bits is noticed
FIRST_ADDRESS = 2**36

# The first two have the kernels that tests/ops/test_gpu_compile.py compiles too.
_OFTEN = dict(B=1, C=1024, H=16)
_RARELY = dict(C=21, H=7, l_max=40, r_max=30, max_offset=1.1)
PROBLEMS: dict[str, dict[str, Any]] = {
    "short windows": dict(**_OFTEN, T=70, l_max=15, r_max=15),
    "long windows": dict(**_OFTEN, T=135, l_max=127, r_max=127),
    "bfloat16": dict(B=1, T=150, C=64, H=1, l_max=31, r_max=31, dtype=torch.bfloat16),
    "bfloat16, long windows": dict(B=1, T=150, C=64, H=1, l_max=63, r_max=63, dtype=torch.bfloat16),
    "float16": dict(B=1, T=70, C=40, H=2, l_max=15, r_max=15, dtype=torch.float16),
    "float64": dict(B=1, T=20, C=6, H=2, l_max=7, r_max=3, dtype=torch.float64),
    "causal": dict(B=2, T=131, C=6, H=3, l_max=9, r_max=0),
    "lengths": dict(B=3, T=140, lengths=torch.tensor([140, 0, 129]), **_RARELY),
    "packed": dict(T=270, cu_seqlens=torch.tensor([0, 3, 3, 200, 270]), **_RARELY),
}


@dataclass(frozen=True)
class Call:
    """One call of the operation: its steps and its results, which the steps fill."""

    steps: list
    results: tuple[Tensor, ...]


def calls_of(case: Case, grad_out: Tensor) -> tuple[Call, Call]:
    """Plan the forward and the backward of a case."""
    settings = dict(max_offset=1.0, normalize=True, lengths=None, cu_seqlens=None) | case.settings
    ends = settings.pop("lengths"), settings.pop("cu_seqlens")
    windows = gpu_plans.Windows(case.left, case.right, **settings)
    out, *grads = (like.new_empty(like.shape) for like in (case.x, case.x, case.left, case.right))
    forward = gpu_plans.forward(case.x, windows, out, *ends)
    backward = gpu_plans.backward(grad_out, case.x, windows, tuple(grads), *ends)
    return Call(forward, (out,)), Call(backward, tuple(grads))


@dataclass(frozen=True)
class Compiled:
    """A kernel as PTX. `passed` says which arguments, or elements of them, are its parameters."""

    ptx: str
    shared: int
    passed: list[list]


def run(call: Call, compiled: list[Compiled | None]) -> tuple[Tensor, ...]:
    """Run the steps of a call, kernels by their PTX; return the results."""
    for step, code in zip(call.steps, compiled, strict=True):
        if code is None:
            step.run()
        else:
            _launch(step, code)
    return call.results


def _launch(launch: Launch, code: Compiled) -> None:
    """Run one launch on the memory of its tensors and of nothing else."""
    values = [_argument(launch, path) for path in code.passed]
    contents = [_bytes_of(value) for value in values if isinstance(value, Tensor)]
    # each tensor has a block of its own, so that no pointer leads from one to another
    memory = Memory([len(content) for content in contents], FIRST_ADDRESS)
    for block, content in zip(memory.blocks, contents, strict=True):
        block[:] = content
    addresses = iter(memory.addresses.tolist())
    numbers = [next(addresses) if isinstance(value, Tensor) else value for value in values]
    Machine(Kernel(code.ptx), launch.programs, numbers, memory, code.shared).run()
    for block, users, content in zip(memory.blocks, memory.users, contents, strict=True):
        # the kernels store to no tensor that shares its memory with another one
        if (users != -1).any():
            content[:] = block


def _argument(launch: Launch, path: list) -> Any:
    name, *places = path
    value = launch.arguments[name]
    for place in places:
        value = value[place]
    return value


def _bytes_of(tensor: Tensor):
    """Return the bytes of a contiguous tensor, as a numpy array that shares them."""
    return tensor.view(-1).view(torch.uint8).numpy()


def problem(name: str) -> tuple[Case, Tensor]:
    """Return the inputs of a problem, and a gradient."""
    case = make_case(**PROBLEMS[name])
    generator = torch.Generator().manual_seed(1)
    return case, torch.randn(case.x.shape, generator=generator).to(case.x.dtype)


QUICK = ["short windows", "long windows"]


@functools.cache
def compiled(name: str) -> tuple[list[Compiled | None], ...]:
    """Compile the forward and the backward of a problem."""
    return compiling(_compile, name)


def _compile(name: str) -> tuple[list[Compiled | None], ...]:
    from talkconv.bench.gpu_compile import compile_ahead, source_of

    def passed(kind: Any, path: list) -> list[list]:
        if isinstance(kind, tuple):
            return [each for k, part in enumerate(kind) for each in passed(part, [*path, k])]
        return [] if kind == "constexpr" else [path]

    def compiled_step(step: Any) -> Compiled | None:
        if not isinstance(step, Launch):
            return None
        code = compile_ahead(step, "cuda", 80, 32)
        signature = source_of(step).signature
        paths = [path for key, kind in signature.items() for path in passed(kind, [key])]
        return Compiled(code.asm["ptx"], code.usage.shared, paths)

    return tuple([compiled_step(step) for step in call.steps] for call in calls_of(*problem(name)))
