"""One row of a table: contestants measured side by side, in memory and in time.

First each contestant runs in a process of its own, which gives its memory and a first time. Then
all of them take turns in one process, which gives their times. A contestant that would take too
long or too much memory is left out, and the row says why.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from talkconv.bench.measure import Pace, Timing, plain
from talkconv.bench.own_process import DoesNotFit
from talkconv.bench.peak_memory import Peak

# A row of a JSON file. It has "timings" and "bytes" by name, and "absent" with the reason for each
# contestant that was not measured.
RowResult = dict[str, Any]

Alone = Callable[[str], Peak]
Together = Callable[[list[str], Mapping[str, float]], dict[str, Timing]]


def measure_row(
    names: Iterable[str],
    why_not: Callable[[str], str | None],
    alone: Alone,
    together: Together | None,
    pace: Pace,
) -> RowResult:
    """Measure the contestants of one row.

    why_not(name) is the reason to leave a contestant out, or None. alone(name) runs it once in a
    process of its own. together(names, known) lets all of them take turns, where `known` has the
    seconds of their first runs. It is None if their inputs do not fit into one process.
    """
    absent: dict[str, str] = {}
    peaks: dict[str, Peak] = {}
    for name in names:
        reason = why_not(name)
        if reason is None:
            try:
                peaks[name] = alone(name)
            except DoesNotFit:
                reason = "does not fit into memory"
        if reason is not None:
            absent[name] = reason
    return {
        "timings": plain(_timings(peaks, alone, together, pace)),
        "bytes": {name: peak.bytes for name, peak in peaks.items()},
        "absent": absent,
    }


def _timings(
    peaks: Mapping[str, Peak], alone: Alone, together: Together | None, pace: Pace
) -> dict[str, Timing]:
    known = {name: peak.seconds for name, peak in peaks.items()}
    if together is not None and known:
        try:
            return together(list(known), known)
        except DoesNotFit:
            pass  # Each of them fits, but not all at a time.
    times = {name: [seconds] for name, seconds in known.items()}
    for _ in range(pace.least_rounds - 1):
        for name, taken in times.items():
            if sum(taken) < pace.enough:
                taken.append(alone(name).seconds)
    return {name: Timing.of(taken) for name, taken in times.items()}


def too_slow(
    name: str, n: int, power: int, pace: Pace, shorter: tuple[int, RowResult] | None
) -> str | None:
    """Return why a contestant is left out at n tokens, judged by the row of a shorter length.

    `power` is the exponent of its time over n.
    """
    if shorter is None:
        return None
    length, row = shorter
    if name not in row["timings"]:
        reason: str | None = row["absent"].get(name)
        return reason if reason is None or " at n = " in reason else f"{reason} at n = {length:,}"
    expected = row["timings"][name]["median"] * (n / length) ** power
    return f"would take about {expected:,.0f} s" if expected > pace.patience else None
