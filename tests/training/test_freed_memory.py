"""Tests that a process keeps freed memory after it asked for that."""

import subprocess
import sys

import pytest

from talkconv.training import freed_memory
from talkconv.training.freed_memory import keep
from tests.training.cases import cli

# Writes to a large block and frees it, five times, and prints the page faults of this.
FAULTS = """
import ctypes, resource, sys
from talkconv.training import freed_memory
if "keep" in sys.argv:
    assert freed_memory.keep()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = libc.memset.argtypes = None
def use(size):
    block = ctypes.c_void_p(libc.malloc(ctypes.c_size_t(size)))
    libc.memset(block, 1, ctypes.c_size_t(size))
    libc.free(block)
# glibc itself keeps blocks up to 32 MiB after it has freed one of their size
size = 64 << 20
use(size)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    use(size)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(*words):
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, *words], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be told to keep memory")
def test_freed_memory_is_kept_for_the_next_block():
    pages = (64 << 20) // 4096
    assert page_faults() > pages
    assert page_faults("keep") < pages / 100


def test_other_systems_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(freed_memory.ctypes, "CDLL", None)
    assert not keep()


def test_the_command_keeps_freed_memory(monkeypatch):
    calls = []
    monkeypatch.setattr(freed_memory, "keep", lambda: calls.append("keep"))
    cli("tony")
    assert calls == ["keep"]
