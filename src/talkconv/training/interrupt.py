"""Treats Ctrl-C as a request to stop after the current step."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

# Schedulers of clusters send SIGTERM before they kill a process.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """Sets `requested` at the first Ctrl-C inside its `with` block. The second one stops at once.

    If `patient`, the second one is ignored: under torchrun, a process gets each Ctrl-C twice, from
    the terminal and from torchrun.
    """

    def __init__(self, announce: Callable[[], object], *, patient: bool = False) -> None:
        self.requested = False
        self._patient = patient
        self._announce = announce
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupt":
        # Python allows signal handlers only in the main thread.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            if self._patient:
                return
            raise KeyboardInterrupt
        self.requested = True
        self._announce()
