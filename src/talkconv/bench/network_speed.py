"""Speed and memory of whole networks with each mixer: training steps, and long documents."""

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from talkconv.bench.measure import Pace, Run, Timing, at_pace, seconds_of
from talkconv.bench.networks import encode_document, training_step
from talkconv.bench.own_process import run_alone
from talkconv.bench.peak_memory import Peak, peak_of
from talkconv.bench.side_by_side import RowResult, measure_row, too_slow
from talkconv.network_settings import MIXERS

# Tokens in a batch, whatever the length of its sequences.
TOKENS = 8192


@dataclass(frozen=True)
class Job:
    """The work of the networks in one row."""

    make: Callable[[str], Run]
    length: int
    # the exponent of its time over the length, with a mixer of linear cost
    power: int
    # the number of runs until memory and time no longer change
    warm_up: int


def measure_training(
    length: int,
    pace: Pace,
    shorter: tuple[int, RowResult] | None = None,
    *,
    tokens: int = TOKENS,
    mixers: Sequence[str] = MIXERS,
) -> RowResult:
    """Measure training steps with each mixer on batches of `tokens` tokens."""
    make = functools.partial(training_step, tokens=tokens, length=length)
    # The first step makes the optimizer's state. A batch has the same number of tokens at any
    # length, so the time of a linear mixer does not grow with the length.
    return _measure(Job(make, length, power=0, warm_up=1), mixers, pace, shorter)


def measure_documents(
    length: int, pace: Pace, shorter: tuple[int, RowResult] | None = None
) -> RowResult:
    """Measure encoders with each mixer on one document of `length` tokens."""
    make = functools.partial(encode_document, length=length)
    return _measure(Job(make, length, power=1, warm_up=0), MIXERS, pace, shorter)


def _measure(
    job: Job, mixers: Sequence[str], pace: Pace, shorter: tuple[int, RowResult] | None
) -> RowResult:
    def why_not(name: str) -> str | None:
        power = job.power + (name == "attention")
        return too_slow(name, job.length, power, pace, shorter)

    def alone(name: str) -> Peak:
        return run_alone(peak_alone, job, name)

    def together(names: list[str], known: Mapping[str, float]) -> dict[str, Timing]:
        return run_alone(time_together, job, names, pace, known)

    return measure_row(mixers, why_not, alone, together, pace)


def peak_alone(job: Job, mixer: str) -> Peak:
    """Build a network and run it. Call this in its own process.

    The bytes include weights and optimizer. The seconds are those of the last run.
    """
    # Import the libraries first, so that their memory is not counted.
    importlib.import_module("talkconv.models")
    seconds: list[float] = []

    def build_and_run() -> None:
        run = job.make(mixer)
        seconds.extend(seconds_of(run) for _ in range(job.warm_up + 1))

    peak = peak_of(build_and_run)
    return Peak(seconds[-1], peak.bytes)


def time_together(
    job: Job, names: list[str], pace: Pace, known: Mapping[str, float]
) -> dict[str, Timing]:
    """Let the networks take turns in this process."""
    return at_pace({name: job.make(name) for name in names}, pace, known)
