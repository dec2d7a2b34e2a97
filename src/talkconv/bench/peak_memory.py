"""Measures the peak memory of a run, and the memory of the machine."""

import contextlib
import ctypes
import os
import time
from dataclasses import dataclass
from pathlib import Path

from talkconv.bench.measure import Run
from talkconv.ops import memory

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_MEMINFO = Path("/proc/meminfo")
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_CGROUP_USED = Path("/sys/fs/cgroup/memory.current")


@dataclass(frozen=True)
class Peak:
    """The seconds of one run, and the bytes at its peak if the system reports them."""

    seconds: float
    bytes: int | None


def peak_of(run: Run) -> Peak:
    """Run once, and return the time and by how many bytes the process grew at its peak.

    The process should be a new one (see own_process), because freed memory of earlier runs would
    hide what this one takes. The caller warms up first, because libraries and stacks of threads
    are loaded only once. The bytes are None on systems without /proc.
    """
    try:
        return_freed_memory()
        # The first time, reading a field itself takes some memory.
        status_bytes("VmHWM")
        _RESET.write_text("5")
        before = status_bytes("VmRSS")
    except OSError:
        before = None
    begin = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - begin
    peak = None if before is None else max(0, status_bytes("VmHWM") - before)
    del result
    return Peak(seconds, peak)


def peak_of_process() -> int | None:
    """Return the most bytes that this process has held so far, or None without /proc."""
    try:
        return status_bytes("VmHWM")
    except OSError:
        return None


def available_bytes() -> int | None:
    """Return the memory that this process can still get without swapping, or None if unknown."""
    try:
        free = _field(_MEMINFO, "MemAvailable")
    except OSError:
        return None
    # There may be no control group, or one without a limit ("max").
    with contextlib.suppress(OSError, ValueError):
        free = min(free, int(_CGROUP_LIMIT.read_text()) - int(_CGROUP_USED.read_text()))
    return free


def limit_memory(share: float = 0.85) -> None:
    """Let allocations of this process fail beyond a share of the memory that is available now.

    A run that does not fit then ends with an error instead of taking the machine down.
    """
    free = available_bytes()
    if free is None or os.name != "posix":
        return
    import resource  # exists on POSIX systems only

    used = status_bytes("VmData")
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (used + int(share * free), most))


def return_freed_memory() -> None:
    """Return freed memory to the system, so that it does not hide what the next run takes."""
    memory.release()
    trim_heap()


def trim_heap() -> None:
    """Let the C library return its free blocks to the system; kept outputs stay kept."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def status_bytes(field: str) -> int:
    """Return a field of /proc/self/status, for instance VmRSS, in bytes."""
    return _field(_STATUS, field)


def _field(file: Path, field: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{file} has no {field}")
