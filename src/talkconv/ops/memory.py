"""Keeps the memory of large outputs when they are freed, and uses it for later outputs.

The C library returns large blocks to the system when they are freed. The next output then has a
page fault for each of its pages, which can take twice as long as its sums. PyTorch keeps the memory
of GPUs in the same way, for the same reason. This helps inference with large outputs. A training
step becomes neither faster nor larger.
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

# The C library itself keeps the memory of smaller outputs.
LARGE = 1 << 20
_KEEPS = sys.platform == "linux"
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")

# The kept blocks by their size. A thread that pops a block owns it, so no lock is needed. A lock
# could block forever, because _give_back() may run in the middle of any call.
_kept: dict[int, list[mmap.mmap]] = {}


class _Lease(weakref.ref[memoryview]):
    """A reference to the view that an output's storage holds. Its block is free after the view."""

    __slots__ = ("block",)
    block: mmap.mmap


_leases: dict[int, _Lease] = {}  # by id, because a reference to a view cannot be hashed


def empty(shape: Sequence[int], like: Tensor) -> Tensor:
    """Return a contiguous CPU tensor of the dtype of `like` with undefined values."""
    needed = math.prod(shape) * like.element_size()
    flat = _leased(needed, like.dtype) if _KEEPS and needed >= LARGE else None
    # resize_, because autograd forbids writing to a view that a function returns
    return like.new_empty(shape) if flat is None else flat.resize_(shape)


def release() -> None:
    """Return all kept memory to the system; outputs in use stay as they are."""
    _kept.clear()


def kept_bytes() -> int:
    """Return how much memory is kept for later outputs."""
    return sum(size * len(blocks) for size, blocks in list(_kept.items()))


@functools.cache
def most_kept_bytes() -> int:
    """Return the bound: a sixteenth of the memory of this process, or 0 where nothing is kept."""
    if not _KEEPS:
        return 0
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no control group, or "max"
        memory = min(memory, int(_CGROUP_LIMIT.read_text()))
    return memory // 16


def _leased(needed: int, dtype: torch.dtype) -> Tensor | None:
    """Return a flat tensor of `needed` bytes, or None if the system has no memory for it."""
    block = _take(needed)
    if block is None:
        return None
    view = memoryview(block)
    lease = _Lease(view, _give_back)
    lease.block = block
    _leases[id(lease)] = lease
    return torch.frombuffer(view, dtype=dtype, count=needed // dtype.itemsize)


def _take(needed: int) -> mmap.mmap | None:
    """Return a kept block, or else a new one; return None if the system has no memory for it."""
    # sizes are rounded up by at most an eighth, so that outputs of almost one size share blocks
    step = 1 << (needed.bit_length() - 4)
    size = -(-needed // step) * step
    try:
        return _kept[size].pop()
    except LookupError:  # there is none of this size, or another thread was faster
        pass
    try:
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError):
        release()
        return None
    # Huge pages make a first call of 1 000 tokens 3.8 times as fast, and later ones 1.3 times.
    with contextlib.suppress(OSError):  # this system has none
        block.madvise(mmap.MADV_HUGEPAGE)
    return block


def _give_back(lease: _Lease) -> None:
    del _leases[id(lease)]
    size = len(lease.block)
    _kept.setdefault(size, []).append(lease.block)
    excess = kept_bytes() - most_kept_bytes()
    if excess > 0:
        _drop(excess, in_use=size)


def _drop(excess: int, in_use: int) -> None:
    """Drop at least `excess` bytes; blocks of the size that is in use are dropped last."""
    for size in sorted(_kept, key=lambda size: size == in_use):
        blocks = _kept.get(size, [])
        while blocks and excess > 0:
            with contextlib.suppress(IndexError):  # another thread was faster
                blocks.pop(0)
            excess -= size


if _KEEPS:
    # a forked child would copy each kept page on its first write
    os.register_at_fork(after_in_child=release)
