"""Paired bootstrap: a test whether one output is better than another or differs only by chance."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from talkconv.evaluation.metric import SAMPLES, Metric, check_lines, resampled


@dataclass(frozen=True)
class Comparison:
    """The scores of an output and of a baseline."""

    name: str
    value: float
    baseline: float
    # how often chance alone makes a difference at least this large
    p_value: float
    # how often the output beats the baseline over the samples
    wins: float

    @property
    def difference(self) -> float:
        return self.value - self.baseline


def paired_bootstrap(
    metric: Metric,
    hypotheses: Sequence[str],
    baseline: Sequence[str],
    references: Sequence[str],
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare two outputs of the same sources.

    Each sample draws lines with replacement, the same for both. The test assumes that for systems
    of equal quality the differences would spread around 0 as they now spread around their mean. It
    is two-sided. sacreBLEU's --paired-bs, like Moses' script, takes the absolute differences before
    it subtracts their mean, which makes its p-values about half as large.
    """
    check_lines(hypotheses, references)
    check_lines(baseline, references)
    both = [metric.statistics(lines, references) for lines in (hypotheses, baseline)]
    ours, theirs = (
        np.array([metric.value(total) for total in totals])
        for totals in resampled(both, samples, seed)
    )
    value, other = (metric.value(each.sum(axis=0)) for each in both)
    differences = ours - theirs
    chance = np.abs(differences - differences.mean()) >= abs(value - other)
    return Comparison(
        metric.name,
        value,
        other,
        p_value=float((chance.sum() + 1) / (samples + 1)),
        wins=float((differences > 0).mean()),
    )
