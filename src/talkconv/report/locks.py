"""Locks that keep two processes from working on one run."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int | None]:
    """Hold a lock inside the `with` block. Yield its file descriptor, or None if it is taken.

    A child process that inherits the descriptor holds the lock too, even after this process died.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield file.fileno()
