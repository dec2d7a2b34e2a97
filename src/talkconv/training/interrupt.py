"""Ctrl-C as a wish to stop after the step that is being done."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

# schedulers of clusters send the second before they kill
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """While entered, the first Ctrl-C is noted in `requested`; the second stops at once, unless
    `patient`: torchrun passes on to its processes what the terminal has already told them."""

    def __init__(self, announce: Callable[[], object], *, patient: bool = False) -> None:
        self.requested = False
        self._patient = patient
        self._announce = announce
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupt":
        # Python hands signals to the main thread alone
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
