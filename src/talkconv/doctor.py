"""`talkconv doctor` prints which kernels run on this machine, and why.

Torch takes seconds to import. It is asked only by `talkconv doctor --full`.
"""

import ctypes
import importlib.metadata
import importlib.util
import math
import os
import platform
import runpy
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer
from packaging.requirements import Requirement
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import talkconv
from talkconv.installing import install_command, reinstall_command
from talkconv.machine import has_bfloat16, processor_name
from talkconv.ops import library

# A small example worked out by hand: each window is a token and half of each neighbour.
_VALUES = [1.0, 2.0, 3.0, 4.0, 5.0]
_OFFSETS = [0.5] * 5
_WANTED = [2 / 3, 4 / 3, 6 / 3, 8 / 3, 7 / 3]


def doctor(full: bool = False) -> None:
    """Print which kernels run on this machine and what is missing. With `full`, ask torch too."""
    console = Console()
    table = Table(title="talkconv doctor", title_justify="left", show_header=False)
    # Torch is imported before the kernel is loaded, so that both use one library of threads.
    only_torch_knows = findings_of_torch() if full else {}
    for name, value in (findings() | only_torch_knows).items():
        table.add_row(name, escape(value))
    console.print(table)
    missing = missing_packages()
    for extra, packages in missing.items():
        console.print(
            f"missing: {', '.join(packages)} – {escape(install_command(extra))}",
            highlight=False,
            soft_wrap=True,
        )
    if not missing:
        console.print("all optional packages are installed")
    results = results_in_torch() if full else results_of_kernel()
    for name, works in results.items():
        told = "the right result" if works else "[bold red]a wrong result[/]"
        console.print(f"{name} gives {told} on a small example", highlight=False)
    if not full:
        console.print("`talkconv doctor --full` checks the operation in torch, and finds GPUs")
    if not all(results.values()):
        console.print("please report this, with the lines above")
        raise typer.Exit(1)


def findings() -> dict[str, str]:
    """Return what the table shows: names and values."""
    return {
        "talkconv": talkconv.__version__,
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "torch": _torch(),
        "processor": f"{processor_name()}, {os.cpu_count()} cores",
        "CPU kernel": _cpu_kernel(),
        "bfloat16": _bfloat16(),
        "Triton": _version("triton") or "not installed",
    }


def findings_of_torch() -> dict[str, str]:
    """Return what only torch knows."""
    import torch

    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "threads": f"{torch.get_num_threads()} (torch.set_num_threads changes it)",
        "GPU": ", ".join(gpus) or "none that torch can use",
    }


def missing_packages() -> dict[str, list[str]]:
    """Return, for each extra, the packages that it needs and that are not installed."""
    extras = importlib.metadata.metadata("talkconv").get_all("Provides-Extra") or []
    found: dict[str, list[str]] = {}
    for requirement in map(Requirement, importlib.metadata.requires("talkconv") or ()):
        if requirement.marker is None or _version(requirement.name) is not None:
            continue
        for extra in extras:
            # markers also name systems and versions of Python that need the package
            if extra != "dev" and requirement.marker.evaluate({"extra": extra}):
                found.setdefault(extra, []).append(requirement.name)
    return found


def results_of_kernel() -> dict[str, bool]:
    """Return whether the compiled kernel, if it can be loaded, computes the small example."""
    try:
        kernel = library.find_kernel()
    except OSError:  # findings() tells why
        kernel = None
    if kernel is None:
        return {}
    array = ctypes.c_float * len(_VALUES)
    x, offsets, out = array(*_VALUES), array(*_OFFSETS), array()
    problem = library.Problem(
        sequences=1,
        tokens=len(_VALUES),
        context=0,
        channels=1,
        heads=1,
        l_max=1,
        r_max=1,
        max_offset=1.0,
        scale=1 / 3,
        lengths=0,
        cu_seqlens=0,
        dtype=library.DTYPES.index("float32"),
        offset_dtype=library.DTYPES.index("float32"),
        threads=1,
    )
    addresses = [ctypes.addressof(tensor) for tensor in (x, offsets, offsets, out)]
    kernel.forward(problem, (len(_VALUES), 1) * 4, addresses)
    return {"the CPU kernel": _is_right(out)}


def results_in_torch() -> dict[str, bool]:
    """Return, for each device of torch, whether talk_conv() computes the small example."""
    import torch

    results = {}
    for device in ("cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))):
        x = torch.tensor(_VALUES, device=device).view(1, -1, 1)
        offsets = torch.tensor(_OFFSETS, device=device).view(1, -1, 1)
        out = talkconv.talk_conv(x, offsets, offsets, l_max=1, r_max=1)
        results[f"talk_conv on {device}"] = _is_right(out.flatten().tolist())
    return results


def _is_right(out: Iterable[float]) -> bool:
    return all(
        math.isclose(value, wanted, rel_tol=1e-5)
        for value, wanted in zip(out, _WANTED, strict=True)
    )


def _torch() -> str:
    """Return the version of torch and what it was built for, without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return f"not installed; networks are trained with it: {install_command('torch')}"
    build: dict[str, Any] = runpy.run_path(str(Path(spec.origin).with_name("version.py")))
    for name in ("cuda", "hip"):
        if build.get(name):
            return f"{build['__version__']}, built for {name.upper()} {build[name]}"
    return f"{build['__version__']}, built without CUDA and HIP"


def _bfloat16() -> str:
    if has_bfloat16():
        return "the processor multiplies it; training.precision=bf16 trains faster than fp32"
    return "the processor does not multiply it; on this CPU, training.precision=bf16 is slow"


def _cpu_kernel() -> str:
    try:
        kernel = library.find_kernel()
    except OSError as error:
        # The library of threads that the kernel needs comes with torch, if the system has none.
        return f"compiled, but not loaded without torch: {error}"
    if kernel is not None:
        others = [isa for isa in kernel.available_isas() if isa != kernel.isa]
        return f"compiled, {kernel.isa} in use (also here: {', '.join(others) or 'none'})"
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    cure = (
        f"{compiler} is here now, and `{reinstall_command()}` builds the kernel"
        if compiler
        else f"no C++ compiler was found; install one, then run `{reinstall_command()}`"
    )
    return f"none: plain PyTorch operations run instead, several times slower. {cure}"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
