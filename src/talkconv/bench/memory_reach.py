"""Finds how long a sequence can be in training before a given memory is full, for each mixer."""

from collections.abc import Mapping
from typing import Any

from talkconv.bench.measure import Pace, seconds_of
from talkconv.bench.networks import training_step
from talkconv.bench.own_process import DoesNotFit, run_alone
from talkconv.bench.peak_memory import Peak, peak_of_process

BUDGET = 8 << 30
# Peaks are measured at these lengths. They lie on a line, and the length that the line predicts is
# tried.
LENGTHS = (2048, 4096, 8192)


def reach(mixer: str, pace: Pace, lengths: tuple[int, ...] = LENGTHS) -> dict[str, Any]:
    """Return how many tokens one sequence may have, and the measured peaks.

    "tried" is False if a step of that length would take too long here, and the length was only
    extrapolated from the peaks of shorter ones.
    """
    found = {n: run_alone(step_alone, mixer, n) for n in lengths}
    if any(peak.bytes is None for peak in found.values()):
        return {"tokens": None, "tried": False, "peaks": {}}
    tokens = full_at(found)
    last = found[lengths[-1]]
    power = 2 if mixer == "attention" else 1
    seconds = last.seconds * (tokens / lengths[-1]) ** power
    tried = tokens > lengths[-1] and seconds <= pace.patience
    if tried:
        try:
            found[tokens] = run_alone(step_alone, mixer, tokens)
            tokens = full_at(found)
        except DoesNotFit:
            tried = False
    peaks = {str(n): peak.bytes for n, peak in found.items()}
    return {"tokens": tokens, "tried": tried, "peaks": peaks}


def full_at(found: Mapping[int, Peak]) -> int:
    """Return the length whose peak fills the budget, on the line through the last two peaks.

    >>> full_at({1000: Peak(0, 2 << 30), 2000: Peak(0, 3 << 30)})
    6976
    """
    (n_before, before), (n, last) = sorted(found.items())[-2:]
    assert before.bytes is not None
    assert last.bytes is not None
    per_token = max(1.0, (last.bytes - before.bytes) / (n - n_before))
    tokens = n + (BUDGET - last.bytes) / per_token
    return int(tokens) // 64 * 64


def step_alone(mixer: str, length: int) -> Peak:
    """Take two training steps on one sequence. Call this in its own process."""
    step = training_step(mixer, tokens=length, length=length)
    # The first step makes the optimizer's state, so only the second one has the full peak.
    step()
    return Peak(seconds_of(step), peak_of_process())
