"""The number of this process, and of all processes that torchrun started for a run."""

import os
import socket

import psutil


def process() -> int:
    """Return the number of this process among all of them; the first is 0."""
    return int(os.environ.get("RANK", "0"))


def processes() -> int:
    """Return how many processes torchrun started on all machines."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def launch_id() -> str | None:
    """Return a text that identifies one launch of torchrun, or None without torchrun.

    It stays the same when torchrun restarts its processes. If the user gave a name with --rdzv-id,
    it is that name, on all machines. Otherwise it names the process that runs torchrun on this
    machine.
    """
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    if name is None:
        return None
    if name != "none":
        return name
    launcher = psutil.Process(os.getppid())
    return f"{socket.gethostname()} {launcher.pid} {launcher.create_time()}"
