"""Lets this process keep the memory of freed tensors, for the next steps of a training on a CPU.

Each step allocates tensors of almost the same sizes. On Linux, the C library returns large blocks
to the system as soon as they are freed. The next step then has a page fault for each page of them,
and the system clears each page. Where the logits of a batch are large, this took a third of a step.
"""

import ctypes
import os
import sys

# The numbers of the settings in <malloc.h> of glibc.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_MOST = 2**31 - 1


def keep() -> bool:
    """Keep freed memory from now on, and return whether this system can.

    This holds for the whole process and cannot be undone, so a command may call it and a function
    of the library may not. Call it before torch is imported: torch then asks for huge pages too.
    """
    if sys.platform != "linux":
        return False
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    # The C libraries of some systems, such as musl, do not have this function.
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    # Blocks come from the heap alone, and its free end is returned only beyond 2 GiB.
    return all(
        set_option(option, value) == 1
        for option, value in ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, _MOST))
    )
