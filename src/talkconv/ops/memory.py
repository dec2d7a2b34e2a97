"""Memory for large outputs: kept when they die, and used again for the next.

The C library returns large blocks to the system as soon as they are freed. The next output then
pays a trap for each of its pages, in all twice the time of its sums. PyTorch keeps the memory of
GPUs in the same way, for the same reason.
"""

import contextlib
import functools
import math
import mmap
import os
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

# Smaller blocks come from memory that the C library keeps itself: glibc's largest mmap threshold.
LARGE = 32 << 20
_KEEPS = sys.platform == "linux"
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")

# The oldest first. Who removes a block from the list owns it; no lock is needed, which a finalizer
# that runs in the middle of a call could wait for forever.
_kept: list[mmap.mmap] = []


def empty(shape: Sequence[int], like: Tensor) -> Tensor:
    """A contiguous CPU tensor of the dtype of `like`, its values undefined."""
    count = math.prod(shape)
    size = count * like.element_size()
    block = _take(size) if _KEEPS and size >= LARGE else None
    if block is None:
        return like.new_empty(shape)
    view = memoryview(block)  # lives as long as the storage
    weakref.finalize(view, _give_back, block).atexit = False
    storage = torch.frombuffer(view, dtype=like.dtype, count=count).untyped_storage()
    # not frombuffer(...).view(shape): autograd forbids writing to views that a function returns
    return like.new_empty(0).set_(storage).resize_(shape)


def empty_like(x: Tensor) -> Tensor:
    return empty(x.shape, x)


def release() -> None:
    """Return all kept memory to the system; outputs in use are not touched."""
    _kept.clear()


def kept_bytes() -> int:
    return sum(map(len, _kept.copy()))


@functools.cache
def most_kept_bytes() -> int:
    """A sixteenth of the memory that this process may use; 0 where nothing is kept."""
    if not _KEEPS:
        return 0
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no control group, or "max"
        memory = min(memory, int(_CGROUP_LIMIT.read_text()))
    return memory // 16


def _take(size: int) -> mmap.mmap | None:
    """The best kept block, else a new one; None where the system has no memory for it."""
    while True:
        # of a block that is much larger, too much would lie idle
        fitting = [block for block in _kept.copy() if size <= len(block) <= size + size // 4]
        if not fitting:
            break
        block = min(fitting, key=len)
        if _own(block):
            return block
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError):
        release()
        return None


def _own(block: mmap.mmap) -> bool:
    try:
        _kept.remove(block)
    except ValueError:  # another thread was faster
        return False
    return True


def _give_back(block: mmap.mmap) -> None:
    _kept.append(block)
    for oldest in _kept.copy():
        if kept_bytes() <= most_kept_bytes():
            break
        _own(oldest)


if _KEEPS:
    # a child would copy the parent's pages one by one as it writes to them
    os.register_at_fork(after_in_child=release)
