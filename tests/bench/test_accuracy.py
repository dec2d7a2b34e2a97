import pytest
import torch

from talkconv.bench import accuracy
from talkconv.bench.accuracy import AUTHORS, OURS, RUNNING_SUM, check_schemes, measure_length


def test_schemes_agree_with_the_dense_definition():
    findings = check_schemes()
    assert [each.name for each in findings] == ["exact", OURS, RUNNING_SUM, AUTHORS]
    assert all(each.is_right for each in findings), findings


def test_a_wrong_scheme_is_found(monkeypatch):
    monkeypatch.setitem(accuracy.SCHEMES, RUNNING_SUM, lambda *t: 1.001 * accuracy.exact(*t))
    assert [each.name for each in check_schemes() if not each.is_right] == [RUNNING_SUM]


def test_errors_grow_with_length_but_not_ours():
    short, long = measure_length(65)["errors"], measure_length(4097)["errors"]
    assert long[OURS] < 3e-7
    assert long[RUNNING_SUM] > 10 * short[RUNNING_SUM]
    # the authors' code is off by 18.5 % at 4 096 tokens
    assert long[AUTHORS] == pytest.approx(0.185, rel=0.3)
    assert long["talk_conv, float16"] < 1e-3


def test_half_precision_edges_do_not_leave_the_sequence():
    x, left, right = accuracy.inputs(70_000)
    half = accuracy.SCHEMES[AUTHORS](x, left, right)
    assert half.shape == x.shape
    assert torch.isfinite(half).all()
