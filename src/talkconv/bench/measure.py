"""Times contestants side by side. They take turns, so that noise affects all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

Run = Callable[[], object]
# A run that takes longer than this needs no warm-up.
SLOW = 1.0


@dataclass(frozen=True)
class Timing:
    """Seconds of one run: the median, and the quartiles as its spread."""

    median: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, seconds: list[float]) -> "Timing":
        """Return the median and quartiles of several runs.

        >>> Timing.of([1.0, 2.0, 3.0, 4.0, 5.0])
        Timing(median=3.0, low=2.0, high=4.0, runs=5)
        """
        if len(seconds) == 1:
            return cls(seconds[0], seconds[0], seconds[0], 1)
        low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
        return cls(median, low, high, len(seconds))

    def overlaps(self, other: "Timing") -> bool:
        """Return whether the quartiles of the two overlap, so that neither is clearly faster.

        >>> Timing(2.0, 1.0, 3.0, 9).overlaps(Timing(4.0, 3.0, 5.0, 9))
        True
        """
        return self.low <= other.high and other.low <= self.high

    def __str__(self) -> str:
        spread = f"{milliseconds(self.low)}–{milliseconds(self.high)}"
        return f"{milliseconds(self.median)} ({spread})"


@dataclass(frozen=True)
class Pace:
    """The time that is spent on each contestant."""

    # seconds that go into each contestant of a row
    seconds: float = 1.0
    # runs of each contestant, even if they take longer
    least_rounds: int = 5
    # seconds after which a slow contestant need not reach least_rounds
    enough: float = 20.0
    # a contestant whose single run is predicted to take longer is not run
    patience: float = 45.0


FULL = Pace()
# The whole of `talkconv bench all --quick` takes two minutes.
QUICK = Pace(seconds=0.1, least_rounds=2, enough=1.0, patience=1.0)


def at_pace(
    contestants: Mapping[str, Run], pace: Pace, known: Mapping[str, float] | None = None
) -> dict[str, Timing]:
    """Measure contestants side by side for as long as the pace says."""
    return measure(
        contestants,
        seconds=pace.seconds,
        least_rounds=pace.least_rounds,
        enough=pace.enough,
        known=known,
    )


def plain(timings: Mapping[str, Timing]) -> dict[str, dict[str, float]]:
    """Return timings as values that JSON can hold."""
    return {name: asdict(timing) for name, timing in timings.items()}


def measure(
    contestants: Mapping[str, Run],
    *,
    seconds: float = 2.0,
    least_rounds: int = 3,
    most_rounds: int = 1000,
    enough: float = float("inf"),
    turn: float = 0.02,
    timer: Callable[[Run], float] | None = None,
    known: Mapping[str, float] | None = None,
) -> dict[str, Timing]:
    """Let all contestants take turns, round after round, until `seconds` have gone into each.

    In its turn a contestant runs as often as fits into `turn` seconds, at least once. Otherwise a
    run of microseconds would mostly measure that the others have filled the caches. A contestant
    is done after `least_rounds` rounds and `seconds` seconds, or after `enough` seconds, and the
    others go on without it. Each turn of a fast contestant begins with a run that is not timed,
    because the others may have taken seconds, in which the system takes freed memory back.
    `known` has the seconds of slow runs that were made before, which count.
    """
    timer = timer or seconds_of
    known = {name: taken for name, taken in (known or {}).items() if taken > SLOW}
    times = {name: [known[name]] if name in known else [] for name in contestants}
    repeats = {
        name: 1 if name in known else _warm_up(run, turn, timer, times[name])
        for name, run in contestants.items()
    }

    def has_its_share(name: str) -> bool:
        taken = times[name]
        spent = sum(taken) * repeats[name]
        if not taken or spent >= enough:
            return bool(taken)
        return len(taken) >= least_rounds and spent >= seconds

    for _ in range(most_rounds):
        waiting = [name for name in contestants if not has_its_share(name)]
        if not waiting:
            break
        for name in waiting:
            run, count = contestants[name], repeats[name]
            if not times[name] or statistics.median(times[name]) < SLOW:
                run()
            times[name].append(sum(timer(run) for _ in range(count)) / count)
    return {name: Timing.of(taken) for name, taken in times.items()}


def _warm_up(run: Run, turn: float, timer: Callable[[Run], float], taken: list[float]) -> int:
    """Run once or twice and return how often the run fits into a turn."""
    first = timer(run)
    if first > SLOW:
        taken.append(first)
        return 1
    return max(1, int(turn / max(timer(run), 1e-9)))


def seconds_of(run: Run) -> float:
    """Return the seconds that one run takes, including the release of its result."""
    begin = time.perf_counter()
    result = run()
    # A caller that gets new memory also spends the time to free it.
    del result
    return time.perf_counter() - begin


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds with three significant digits or more.

    >>> milliseconds(0.0000301), milliseconds(0.00432), milliseconds(22.5)
    ('0.030', '4.32', '22500')
    """
    value = seconds * 1e3
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"
