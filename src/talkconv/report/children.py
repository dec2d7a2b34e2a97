"""Runs commands of talkconv in processes of their own, with one thread each, and stops them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from talkconv.messages import INTERRUPTED

# Each process has one thread, because the threads of several would wait for each other.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


class Stopped(Exception):
    """A command was stopped, or was not started because others were stopped."""


class Children:
    """The commands that run now. `program` is the command line that starts Python."""

    def __init__(self, program: Sequence[str] = (sys.executable, "-m")) -> None:
        self._program = program
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def call(
        self, words: Sequence[str], *, cwd: Path, log: Path, inherit: int | None = None
    ) -> int:
        """Run `talkconv ...` in `cwd`, append what it prints to `log`, and return its exit code.

        `inherit` is a file descriptor that the process keeps open, such as that of a lock.
        """
        assert words[0] == "talkconv", words
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            with self._lock:
                if self._stopped:
                    raise Stopped(" ".join(words))
                child = subprocess.Popen(
                    [*self._program, *words],
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **_ONE_THREAD},
                    pass_fds=() if inherit is None else (inherit,),
                    # The terminal must not send it Ctrl-C too, because a second Ctrl-C stops it at
                    # once, without a checkpoint.
                    start_new_session=True,
                )
                self._running.add(child)
            try:
                code = child.wait()
            finally:
                with self._lock:
                    self._running.discard(child)
        if code == INTERRUPTED or self._stopped:
            raise Stopped(" ".join(words))
        return code

    def stop(self) -> None:
        """Let each running command save its work and end. No more commands are started."""
        with self._lock:
            self._stopped = True
            for child in self._running:
                child.send_signal(signal.SIGINT)
