import pytest

from talkconv.bench import complexity
from talkconv.bench.complexity import LAYERS, Slope, bars_of, fit, row_key, settings_of
from talkconv.bench.measure import Pace
from talkconv.bench.methods import OURS


def test_the_slope_and_its_error_worked_out_by_hand():
    # log2 of the times: 0, 1, 2, 3, 5 over 0, 1, 2, 3, 4; slope 1.2, residuals 0.2 -0 -0.2 -0.4 0.4
    slope = fit([1, 2, 4, 8, 16], [1, 2, 4, 8, 32])
    assert slope.exponent == pytest.approx(1.2)
    assert slope.error == pytest.approx(((0.04 + 0.04 + 0.16 + 0.16) / 3 / 10) ** 0.5, abs=1e-4)


def test_a_constant_has_exponent_zero():
    assert fit([3, 7, 15, 31, 63], [2.0] * 5) == Slope(0.0, 0.0)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_every_line_has_five_points_and_an_expected_exponent(layer):
    assert set(layer.points) == set(layer.exponents)
    for axis, points in layer.points.items():
        assert len(points) >= 5
        settings = settings_of(layer, axis)
        fields = {
            axis: [
                getattr(s, {"n": "n", "window": "reach", "d": "dim"}[axis])
                for s in settings.values()
            ]
        }
        assert fields[axis] == list(points)
        assert all(s.dim % s.heads == 0 for s in settings.values())


def test_bars_are_the_distance_from_what_the_paper_says():
    rows = {
        row_key(OURS, "n"): {"exponent": 1.09},
        row_key(OURS, "window"): {"exponent": -0.2},
    }
    assert [bar.verdict for bar in bars_of(rows)] == ["met", "not met"]
    assert bars_of({}) == []


def test_an_axis_is_measured_and_fitted(monkeypatch):
    times = {"1": 1.0, "3": 2.0, "7": 4.0, "15": 8.0, "31": 16.0}
    plain = {key: dict(median=value) for key, value in times.items()}
    monkeypatch.setattr(complexity, "run_alone", lambda *args: plain)
    # widths are 3, 7, 15, 31, 63, a little less than doubling
    row = complexity.measure_axis(OURS, "window", Pace())
    assert row["exponent"] == pytest.approx(0.91, abs=0.02)
    assert complexity.measure_axis(OURS, "n", Pace())["exponent"] < row["exponent"]
