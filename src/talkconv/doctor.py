"""`talkconv doctor` prints which kernels run on this machine, and why."""

import importlib.metadata
import platform
import shutil

import torch
import typer
from packaging.requirements import Requirement
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import talkconv
from talkconv.installing import install_command, reinstall_command
from talkconv.machine import processor_name
from talkconv.ops import cpu


def doctor() -> None:
    """Print which kernels run on this machine and what is missing."""
    console = Console()
    table = Table(title="talkconv doctor", title_justify="left", show_header=False)
    for name, value in findings().items():
        table.add_row(name, value)
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
    if not works():
        console.print("[bold red]the operation gives a wrong result here; please report this")
        raise typer.Exit(1)
    console.print("the operation gives the right result on a small example")


def findings() -> dict[str, str]:
    """Return what the table shows: names and values."""
    return {
        "talkconv": talkconv.__version__,
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "torch": torch.__version__,
        "processor": processor_name(),
        "threads": f"{torch.get_num_threads()} (torch.set_num_threads changes it)",
        "CPU kernel": _cpu_kernel(),
        "GPU": _gpu(),
        "Triton": _version("triton") or "not installed",
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


def works() -> bool:
    """Return True if the operation gives the result of a small example worked out by hand."""
    x = torch.arange(1.0, 6.0).view(1, 5, 1)
    half = torch.full_like(x, 0.5)
    out = 3 * talkconv.talk_conv(x, half, half, l_max=1, r_max=1).flatten()
    return torch.allclose(out, torch.tensor([2.0, 4.0, 6.0, 8.0, 7.0]))


def _cpu_kernel() -> str:
    kernel = cpu.find_kernel()
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


def _gpu() -> str:
    if torch.cuda.is_available():
        return ", ".join(
            torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())
        )
    return "none that torch can use"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
