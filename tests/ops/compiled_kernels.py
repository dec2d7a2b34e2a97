"""Looks at compiled kernels; tests/ops/compiler.py calls these functions in its process."""

import re
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from talkconv.bench.gpu_compile import compile_ahead, source_of
from talkconv.bench.gpu_estimate import TARGETS
from talkconv.ops import gpu_plans
from talkconv.ops.gpu_steps import Sort

REACHES = dict(
    forward=((31, 31), (127, 127), (2047, 2048)),
    backward=((15, 15), (64, 64), (127, 127), (2047, 2048)),
)


def count(target_name: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return rows about the float32 kernels of a GPU, and the atomic instructions of their PTX."""
    # it takes time to import, and the other functions do not need it
    from talkconv.bench.kernels import calls, measured

    (target,) = (each for each in TARGETS if each.name == target_name)
    rows, atomics = [], []
    for name, chosen in REACHES.items():
        for call in (call for call in calls((torch.float32,), chosen) if call.name == name):
            rows += measured(target, call)
            for step in call.steps:
                if hasattr(step, "kernel"):
                    ptx = compile_ahead(step, "cuda", target.arch, 32).asm["ptx"]
                    atomics += [word for word in ptx.split() if word.startswith(("atom", "red."))]
    return rows, atomics


def products_of(arch: int) -> tuple[list[str], list[str]]:
    """Return the products of dense_grad_x, and the waits in the loop that loads for them.

    The products are as Triton's compiler writes them, the waits as the machine code does.
    """
    # the layout of "short windows" in tests/ops/ptx_launches.py, whose kernel is compiled anyway
    x, offsets = torch.empty(1, 70, 1024), torch.empty(1, 70, 16)
    windows = gpu_plans.Windows(offsets, offsets, 15, 15, 1.0, True)
    _, launch, _ = gpu_plans.backward(x, x, windows, (x, offsets, offsets))
    compiled = compile_ahead(launch, "cuda", arch, 32)
    product = r"(?:tt.dot|warp_group_dot|tc_gen5_mma) (.*?)[:{\[]"
    code = compiled.code
    loops = [code.inside(loop) for loop in code.loops]
    (pipelined,) = [loop for loop in loops if any(i.name == "LDGSTS" for i in loop)]
    waits = [i.text for i in pipelined if i.text.startswith("DEPBAR.LE SB0")]
    return re.findall(product, compiled.asm["ttgir"]), waits


class NoGPU:
    """A GPU that exists only by name."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 80, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def called_and_ahead() -> list[tuple[str, tuple, tuple]]:
    """Follow Triton through a forward and a backward, up to the launches.

    Return for each kernel its name, the signature, constants and attributes that a call compiles
    it for, and those that it is compiled for ahead of time.
    """
    driver.set_active(NoGPU())
    x, offsets = torch.randn(2, 70, 64), torch.rand(2, 70, 2)
    causal = gpu_plans.Windows(offsets, offsets, 5, 0, 1.0, True)
    packed = gpu_plans.Windows(offsets[0], offsets[0], 500, 3, 1.0, True)
    ends = torch.tensor([0, 3, 70])
    grads = (x[0], offsets[0], offsets[0])
    found = []
    for launch in (
        *gpu_plans.forward(x, causal, x, torch.tensor([70, 3])),
        *gpu_plans.backward(x[0], x[0], packed, grads, None, ends),
    ):
        if isinstance(launch, Sort):
            continue
        call = launch.kernel.warmup(**launch.arguments, **launch.options, grid=(launch.programs,))
        of_call, ahead = call.src, source_of(launch)
        attributes = {path: values for path, values in of_call.attrs.items() if values}
        found.append(
            (
                launch.kernel.__name__,
                (of_call.signature, of_call.constants, attributes),
                (ahead.signature, ahead.constants, ahead.attrs),
            )
        )
    return found
