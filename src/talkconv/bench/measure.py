"""Timing side by side: contestants take turns, so that a noisy machine treats all alike."""

import ctypes
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from talkconv.ops import memory


@dataclass(frozen=True)
class Timing:
    """Seconds: the median, and the quartiles as its spread."""

    median: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, seconds: list[float]) -> "Timing":
        if len(seconds) == 1:
            return cls(seconds[0], seconds[0], seconds[0], 1)
        low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
        return cls(median, low, high, len(seconds))

    def __str__(self) -> str:
        return (
            f"{_milliseconds(self.median)} ({_milliseconds(self.low)}–{_milliseconds(self.high)})"
        )


def plain(timings: Mapping[str, Timing]) -> dict[str, dict[str, float]]:
    """As JSON takes it."""
    return {name: asdict(timing) for name, timing in timings.items()}


def measure(
    contestants: Mapping[str, Callable[[], object]],
    *,
    seconds: float = 2.0,
    least_rounds: int = 3,
    most_rounds: int = 1000,
    turn: float = 0.02,
    timer: Callable[[Callable[[], object]], float] | None = None,
) -> dict[str, Timing]:
    """Let all contestants take turns, round after round, until `seconds` have gone into each.

    In its turn a contestant runs as often as fits into `turn` seconds, at least once: a run of
    microseconds would otherwise measure how cold the others leave the caches. One that has had its
    share sits out, so that a slow one does not hold up the others. The quick ones go on to 15
    rounds: what runs after a pause of seconds meets memory that the system has taken back
    meanwhile, and the first rounds are all such.
    """
    timer = timer or seconds_of
    repeats = {name: _repeats(run, turn, timer) for name, run in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(most_rounds):
        waiting = [
            name
            for name, taken in times.items()
            if len(taken) < least_rounds
            or sum(taken) * repeats[name] < seconds
            or (len(taken) < 15 and statistics.median(taken) < 1)
        ]
        if not waiting:
            break
        for name in waiting:
            run, count = contestants[name], repeats[name]
            times[name].append(sum(timer(run) for _ in range(count)) / count)
    return {name: Timing.of(taken) for name, taken in times.items()}


def _repeats(
    run: Callable[[], object], turn: float, timer: Callable[[Callable[[], object]], float]
) -> int:
    """How often a run fits into a turn; the first time only warms up."""
    if timer(run) > 1:
        return 1
    return max(1, int(turn / max(timer(run), 1e-9)))


def seconds_of(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    result = run()
    # freeing the result is part of what a caller pays for fresh memory
    del result
    return time.perf_counter() - begin


def peak_memory_of(run: Callable[[], object]) -> int | None:
    """Bytes by which the process grew at its peak during `run`; None where nobody tells."""
    status = Path("/proc/self/status")
    reset = Path("/proc/self/clear_refs")
    try:
        run()  # thread stacks and libraries are loaded once, not per call
        _return_freed_memory()
        reset.write_text("5")
        before = _kib(status, "VmRSS")
        result = run()
        peak = _kib(status, "VmHWM")
    except OSError:
        return None
    del result
    return max(0, peak - before) * 1024


def _return_freed_memory() -> None:
    """To the system, so that memory of an earlier run does not hide what the next one takes."""
    memory.release()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _kib(status: Path, field: str) -> int:
    for line in status.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise OSError(f"{status} has no {field}")


def _milliseconds(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"
