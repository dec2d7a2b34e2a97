import numpy as np
import pytest

from talkconv.evaluation.bleu import bleu_metric
from talkconv.evaluation.metric import resampled, score
from talkconv.evaluation.rouge import RougeMetric


def test_samples_draw_as_many_lines_as_there_are():
    ones = np.ones((7, 1))
    assert np.array_equal(resampled([ones], samples=20)[0], np.full((20, 1), 7.0))


def test_samples_are_the_same_for_all():
    numbers = np.arange(10.0)[:, None]
    first, second = resampled([numbers, 2 * numbers], samples=50)
    assert np.array_equal(2 * first, second)
    assert first.std() > 0


def test_the_mean_of_samples_is_the_sum():
    numbers = np.arange(100.0)[:, None]
    mean = resampled([numbers], samples=2000)[0].mean()
    # the sum's standard deviation is sqrt(100 * 833), its mean's over 2000 samples 6.5
    assert abs(mean - numbers.sum()) < 4 * 6.5


def test_equal_lines_have_an_interval_of_one_point():
    low, high = score(RougeMetric("ROUGE-1"), ["a b"] * 9, ["a c"] * 9, interval=True).interval
    assert low == pytest.approx(50)
    assert high == pytest.approx(50)


def test_the_interval_is_the_quantiles_of_the_samples():
    # F1 is 1 or 0: the mean of 400 lines scatters with sqrt(0.25 / 400) = 2.5 points
    hypotheses = ["a", "b"] * 200
    found = score(RougeMetric("ROUGE-1"), hypotheses, ["a"] * 400, interval=True)
    low, high = found.interval
    assert found.value == 50
    assert high - low == pytest.approx(2 * 1.96 * 2.5, rel=0.1)


def test_bleu_has_intervals_too():
    lines = [f"w{i} x{i} y{i} z{i}" for i in range(50)]
    broken = [line if at % 2 else line.replace("x", "q") for at, line in enumerate(lines)]
    found = score(bleu_metric("tokenized"), broken, lines, interval=True)
    assert found.interval[0] < found.value < found.interval[1]
