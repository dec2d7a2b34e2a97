import math
import statistics

import pytest

from talkconv.evaluation.bleu import bleu_metric
from talkconv.evaluation.rouge import RougeMetric
from talkconv.evaluation.significance import paired_bootstrap

METRICS = [bleu_metric("tokenized"), RougeMetric("ROUGE-L")]
REFERENCES = [f"a{i} b{i} c{i} d{i} e{i} f{i}" for i in range(200)]


def worse(every, start=0):
    """Return the references with one wrong word in every `every`-th line."""
    return [
        line.replace("c", "x") if at % every == start else line
        for at, line in enumerate(REFERENCES)
    ]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_clear_difference_is_no_chance(metric):
    found = paired_bootstrap(metric, REFERENCES, worse(3), REFERENCES)
    assert found.difference > 0
    assert found.p_value < 0.01
    assert found.wins == 1


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_other_lines_wrong_is_chance(metric):
    found = paired_bootstrap(metric, worse(4), worse(4, start=1), REFERENCES)
    assert abs(found.difference) < 1e-6
    assert found.p_value > 0.5
    assert 0.3 < found.wins < 0.7


def test_an_output_against_itself():
    found = paired_bootstrap(METRICS[0], worse(4), worse(4), REFERENCES)
    assert (found.difference, found.p_value, found.wins) == (0, 1, 0)


@pytest.mark.parametrize("better", [4, 8, 14])
def test_p_values_are_those_of_a_two_sided_test(better):
    # F1 is 1 or 0 here, so that the difference of means is normal with a known deviation
    lines = 100
    ours = ["a"] * (30 + better) + ["b"] * (70 - better)
    theirs = ["b"] * 15 + ["a"] * 30 + ["b"] * 55
    differences = [(x == "a") - (y == "a") for x, y in zip(ours, theirs, strict=True)]
    deviation = statistics.pstdev(differences) / math.sqrt(lines)
    normal = statistics.NormalDist(0, deviation)
    expected = 2 * (1 - normal.cdf(statistics.mean(differences)))
    found = paired_bootstrap(
        RougeMetric("ROUGE-1"), ours, theirs, ["a"] * lines, samples=20_000, seed=better
    )
    assert found.difference == pytest.approx(better)
    # ties count as chance, and differences of means are multiples of 1 / lines
    steps = expected - 2 * (1 - normal.cdf(statistics.mean(differences) + 1 / lines))
    assert expected - 0.01 < found.p_value < expected + steps + 0.01


def test_all_outputs_need_a_line_each():
    with pytest.raises(ValueError, match="got 1 and 200 lines"):
        paired_bootstrap(METRICS[0], REFERENCES, ["a"], REFERENCES)
