"""Describes the origin of a measured number: machine, date, command and commit."""

import datetime
import importlib.util
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import talkconv
from talkconv.files import write_json


def processor_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def machine_name() -> str:
    """Return a short name for this machine that can be the name of a folder."""
    words = re.sub(r"\((?:r|tm)\)|processor|cpu.*", " ", processor_name().lower())
    return re.sub(r"[^a-z0-9]+", "-", f"{words} {os.cpu_count()} cores").strip("-")


def has_bfloat16() -> bool:
    """Return whether the processor computes in bfloat16 and does not only emulate it."""
    info = Path("/proc/cpuinfo")
    words = set(info.read_text().split()) if info.exists() else set()
    return bool(words & {"amx_bf16", "avx512_bf16", "bf16", "svebf16"})


def describe_machine() -> dict[str, Any]:
    """Return the machine, versions, date, command and commit. Facts about torch may be None."""
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "talkconv": talkconv.__version__,
        **_describe_torch(),
        "date": datetime.date.today().isoformat(),
        "command": _command(),
        "commit": _commit(),
    }


def _describe_torch() -> dict[str, Any]:
    if importlib.util.find_spec("torch") is None:
        return dict.fromkeys(("torch", "threads", "kernel", "gpu"))
    # It takes seconds to import, and exported networks do not need it.
    import torch

    from talkconv.ops import library

    kernel = library.find_kernel()
    return {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "kernel": kernel.isa if kernel else "none (eager)",
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def headline(setting: str) -> str:
    """Return the lines above a printed table."""
    machine = describe_machine()
    return (
        f"{machine['processor']}, {machine['threads']} threads, kernel {machine['kernel']}, "
        f"torch {machine['torch']}, {machine['date']}\n{setting}"
    )


def write_results(path: Path, results: Any) -> None:
    """Write results as JSON, together with describe_machine()."""
    write_json(path, {"machine": describe_machine(), "results": results}, indent=1)


def _command() -> str:
    """Return the command of this process, as a user would type it."""
    program = Path(sys.argv[0])
    is_script = program.suffix == ".py" and program.name != "__main__.py"
    return " ".join([f"python {program}" if is_script else "talkconv", *sys.argv[1:]])


def _commit() -> str | None:
    """Return the commit of this package, with "-dirty" if its own files have changed since then.

    Other files do not count: a benchmark writes its first rows into results/, and must not take
    the later ones for those of another version.
    """
    commit = _git("rev-parse", "--short", "HEAD")
    if commit is None:
        return None
    return commit if _git("diff", "--quiet", "HEAD", "--", ".") is not None else f"{commit}-dirty"


def _git(*words: str) -> str | None:
    """Return what a git command prints in the folder of this package, or None if it fails."""
    command = ["git", "-C", str(Path(__file__).parent), *words]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
