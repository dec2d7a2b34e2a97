"""What a number needs to stand: the machine, the date, the command and the commit."""

import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

import talkconv
from talkconv.files import write_json
from talkconv.ops import cpu


def processor_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def describe_machine() -> dict[str, Any]:
    kernel = cpu.find_kernel()
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "talkconv": talkconv.__version__,
        "kernel": kernel.isa if kernel else "none (eager)",
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "date": datetime.date.today().isoformat(),
        "command": " ".join(["talkconv", *sys.argv[1:]]),
        "commit": _commit(),
    }


def headline(setting: str) -> str:
    """What stands above a printed table."""
    machine = describe_machine()
    return (
        f"{machine['processor']}, {machine['threads']} threads, kernel {machine['kernel']}, "
        f"torch {machine['torch']}, {machine['date']}\n{setting}"
    )


def write_results(path: Path, results: Any) -> None:
    """Write results as JSON, with the machine, date and versions that they need to stand."""
    write_json(path, {"machine": describe_machine(), "results": results}, indent=1)


def _commit() -> str | None:
    folder = Path(__file__).parent
    git = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(git, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
