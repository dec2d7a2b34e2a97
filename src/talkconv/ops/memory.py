"""Memory for large outputs: kept when they die, and used again for the next.

The C library returns large blocks to the system when they are freed. The next output then pays a
trap for each of its pages, in all up to twice the time of its sums. PyTorch keeps the memory of
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

# Smaller outputs come from memory that the C library keeps itself.
LARGE = 1 << 20
_KEEPS = sys.platform == "linux"
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")

# By size. Who pops a block owns it; no lock is needed, which a callback that runs in the middle of
# a call could wait for forever.
_kept: dict[int, list[mmap.mmap]] = {}


class _Lease(weakref.ref[memoryview]):
    """Of a block, to the storage of an output: it ends with the view that the storage holds."""

    __slots__ = ("block",)
    block: mmap.mmap


_leases: dict[int, _Lease] = {}  # by id; a view cannot be hashed


def empty(shape: Sequence[int], like: Tensor) -> Tensor:
    """A contiguous CPU tensor of the dtype of `like`, its values undefined."""
    flat = _leased(math.prod(shape) * like.element_size(), like.dtype)
    # not flat.view(shape): autograd forbids writing to views that a function returns
    return like.new_empty(shape) if flat is None else flat.resize_(shape)


def empty_like(x: Tensor) -> Tensor:
    """The same for the shape of a contiguous x, in half the time."""
    flat = _leased(x.nbytes, x.dtype)
    return torch.empty_like(x) if flat is None else flat.resize_as_(x)


def release() -> None:
    """Return all kept memory to the system; outputs in use are not touched."""
    _kept.clear()


def kept_bytes() -> int:
    return sum(size * len(blocks) for size, blocks in list(_kept.items()))


@functools.cache
def most_kept_bytes() -> int:
    """A sixteenth of the memory that this process may use; 0 where nothing is kept."""
    if not _KEEPS:
        return 0
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no control group, or "max"
        memory = min(memory, int(_CGROUP_LIMIT.read_text()))
    return memory // 16


def _leased(needed: int, dtype: torch.dtype) -> Tensor | None:
    """So many bytes as a flat tensor; None where it is for torch to find them."""
    block = _take(needed) if _KEEPS and needed >= LARGE else None
    if block is None:
        return None
    view = memoryview(block)
    lease = _Lease(view, _give_back)
    lease.block = block
    _leases[id(lease)] = lease
    return torch.frombuffer(view, dtype=dtype, count=needed // dtype.itemsize)


def _take(needed: int) -> mmap.mmap | None:
    """A kept block, else a new one; None where the system has no memory for it."""
    # at most an eighth more than needed, so that outputs of almost one size share their blocks
    step = 1 << (needed.bit_length() - 4)
    size = -(-needed // step) * step
    try:
        return _kept[size].pop()
    except LookupError:  # none of this size, or another thread was faster
        pass
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError):
        release()
        return None


def _give_back(lease: _Lease) -> None:
    del _leases[id(lease)]
    size = len(lease.block)
    _kept.setdefault(size, []).append(lease.block)
    excess = kept_bytes() - most_kept_bytes()
    if excess > 0:
        _drop(excess, in_use=size)


def _drop(excess: int, in_use: int) -> None:
    """At least so many bytes; blocks of the size that is in use come last."""
    for size in sorted(_kept, key=lambda size: size == in_use):
        blocks = _kept.get(size, [])
        while blocks and excess > 0:
            with contextlib.suppress(IndexError):  # another thread was faster
                blocks.pop(0)
            excess -= size


if _KEEPS:
    # a child would copy the parent's pages one by one as it writes to them
    os.register_at_fork(after_in_child=release)
