"""The interface of all metrics: statistics of each line, and a score computed from their sum.

Code for scores, confidence intervals and tests of significance works with any metric.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Statistics = NDArray[np.float64]

# The number of bootstrap samples, which is that of ROUGE-1.5.5 and sacreBLEU.
SAMPLES = 1000
CONFIDENCE = 0.95


class Metric(Protocol):
    """A way to compare outputs with references, line by line."""

    @property
    def name(self) -> str: ...

    @property
    def signature(self) -> str:
        """Return the facts that are needed to compute the same score again."""

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> Statistics:
        """Return statistics (N, K) of N lines; the sum over any lines gives their score."""

    def value(self, total: Statistics) -> float:
        """Return the score, 0 to 100, from summed statistics (K,)."""

    def text(self, total: Statistics) -> str:
        """Return the score in the form that the program which defines it prints."""


@dataclass(frozen=True)
class Score:
    """One number of a report, with everything that is needed to understand it."""

    name: str
    value: float
    text: str
    signature: str
    # the confidence interval at CONFIDENCE, if it was asked for
    interval: tuple[float, float] | None = None


def score(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[str], *, interval: bool = False
) -> Score:
    """Score outputs against references, line by line."""
    check_lines(hypotheses, references)
    return score_of(metric, metric.statistics(hypotheses, references), interval=interval)


def score_of(metric: Metric, statistics: Statistics, *, interval: bool = False) -> Score:
    """Return the score that these statistics of lines give."""
    total = statistics.sum(axis=0)
    return Score(
        metric.name,
        metric.value(total),
        metric.text(total),
        metric.signature,
        _interval(metric, statistics) if interval else None,
    )


def check_lines(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise ValueError(
            "hypotheses and references must have the same number of lines, "
            f"got {len(hypotheses)} and {len(references)} lines"
        )
    if not hypotheses:
        raise ValueError("there must be at least one line to score, got none")


def resampled(
    statistics: Sequence[Statistics], samples: int = SAMPLES, seed: int = 0
) -> list[Statistics]:
    """Draw N lines with replacement, `samples` times, and sum their statistics.

    Each (N, K) becomes (samples, K). All get the same lines, which makes a comparison paired.
    """
    lines = len(statistics[0])
    random = np.random.default_rng(seed)
    sums = [np.empty((samples, each.shape[1])) for each in statistics]
    for sample in range(samples):
        times = np.bincount(random.integers(lines, size=lines), minlength=lines)
        for total, each in zip(sums, statistics, strict=True):
            total[sample] = times @ each
    return sums


def _interval(metric: Metric, statistics: Statistics) -> tuple[float, float]:
    values = np.sort([metric.value(total) for total in resampled([statistics])[0]])
    # like ROUGE-1.5.5, take the values at this distance from either end
    outside = int(len(values) * (1 - CONFIDENCE) / 2)
    return float(values[outside]), float(values[-1 - outside])
