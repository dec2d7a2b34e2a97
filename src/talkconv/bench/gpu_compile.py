"""Compiles launches of the GPU kernels ahead of time, for GPUs that need not be present."""

import functools
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from talkconv.bench.gpu_code import Code, read_code
from talkconv.ops.gpu_steps import Launch


@dataclass(frozen=True)
class Usage:
    """The resources of a multiprocessor that one program needs."""

    registers: int  # per thread
    spilled: int  # bytes per thread that are in memory because there are too few registers
    shared: int  # bytes


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel, and the intermediate results of the compiler."""

    usage: Usage
    asm: dict[str, Any]

    @functools.cached_property
    def code(self) -> Code:
        """The machine code for an NVIDIA GPU."""
        return read_code(_nvidia_tool("nvdisasm", "-c", self.asm["cubin"]))


def compile_ahead(launch: Launch, backend: str, arch: int | str, warp: int) -> Compiled:
    """Compile as the first call on that GPU would.

    `backend` is cuda or hip, and `warp` is its number of threads in a warp.
    """
    source = source_of(launch)
    key = (source.hash(), arch, str(launch.options))
    if key not in _compiled:
        target = GPUTarget(backend, arch, warp)
        compiled = triton.compile(source, target=target, options=launch.options)
        read = _usage_of_amdgcn if backend == "hip" else _usage_of_cubin
        registers, spilled = read(compiled.asm)
        usage = Usage(registers, spilled, compiled.metadata.shared)
        _compiled[key] = Compiled(usage, compiled.asm)
    return _compiled[key]


# Calls that differ only in their windows use the same kernels.
_compiled: dict[tuple[str, int | str, str], Compiled] = {}


def source_of(launch: Launch) -> Any:
    """Return the kernel with the types of its arguments, specialized as Triton does in a call."""
    signature: dict[str, Any] = {}
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}

    def type_of(value: Any, path: tuple[int, ...], is_constant: bool, is_special: bool) -> Any:
        if isinstance(value, tuple):
            parts = enumerate(value)
            return tuple(type_of(v, (*path, k), is_constant, is_special) for k, v in parts)
        if is_constant or value is None or (is_special and isinstance(value, int) and value == 1):
            constants[path] = value
            return "constexpr"
        if isinstance(value, Tensor) or (is_special and value % 16 == 0):
            attributes[path] = [["tt.divisibility", 16]]
        if isinstance(value, Tensor):
            return _POINTERS[value.dtype]
        return "i32" if abs(value) < 2**31 else "i64"

    for index, parameter in enumerate(launch.kernel.params):
        signature[parameter.name] = type_of(
            launch.arguments[parameter.name],
            (index,),
            parameter.is_constexpr,
            not parameter.do_not_specialize,
        )
    return ASTSource(launch.kernel, signature, constants, attributes)


_POINTERS = {
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.bfloat16: "*bf16",
    torch.float16: "*fp16",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.int8: "*i8",
}


def _usage_of_cubin(asm: dict[str, Any]) -> tuple[int, int]:
    """Return the registers and the bytes of stack. These kernels use the stack only to spill."""
    said = _nvidia_tool("cuobjdump", "-res-usage", asm["cubin"])
    found = re.search(r"REG:(\d+) STACK:(\d+).* LOCAL:(\d+)", said)
    assert found is not None, f"cuobjdump says nothing about registers: {said}"
    registers, stack, local = map(int, found.groups())
    return registers, stack + local


def _nvidia_tool(name: str, option: str, cubin: bytes) -> str:
    """Return the text that a tool of Triton prints about a cubin."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), option, file.name]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _usage_of_amdgcn(asm: dict[str, Any]) -> tuple[int, int]:
    """Return the vector registers and the bytes of scratch memory.

    Scalar registers spill to vector registers, so they need not be counted.
    """
    fields = dict(re.findall(r"\.(\w+):\s+(\d+)", asm["amdgcn"]))
    return int(fields["vgpr_count"]), int(fields["private_segment_fixed_size"])
