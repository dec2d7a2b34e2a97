import pytest

from talkconv.bench.measure import FULL, Pace, Timing
from talkconv.bench.own_process import DoesNotFit
from talkconv.bench.peak_memory import Peak
from talkconv.bench.side_by_side import measure_row, too_slow


def timing(seconds):
    return dict(median=seconds, low=seconds, high=seconds, runs=3)


def test_a_row_has_times_bytes_and_reasons():
    def alone(name):
        if name == "large":
            raise DoesNotFit("too large")
        return Peak(0.5, 100)

    def together(names, known):
        assert names == ["a", "b"]
        assert known == {"a": 0.5, "b": 0.5}
        return {name: Timing(1.0, 1.0, 1.0, 3) for name in names}

    row = measure_row(
        ["a", "b", "large", "slow"],
        lambda name: "would take about 99 s" if name == "slow" else None,
        alone,
        together,
        FULL,
    )
    assert set(row["timings"]) == set(row["bytes"]) == {"a", "b"}
    assert row["absent"] == {
        "large": "does not fit into memory",
        "slow": "would take about 99 s",
    }


@pytest.mark.parametrize("fits", [True, False])
def test_contestants_that_do_not_fit_together_take_turns_in_their_own_processes(fits):
    turns = []

    def alone(name):
        turns.append(name)
        return Peak({"quick": 1.0, "slow": 9.0}[name], 100)

    def together(names, known):
        raise DoesNotFit("together")

    pace = Pace(least_rounds=3, enough=8.0)
    row = measure_row(["quick", "slow"], lambda name: None, alone, together if fits else None, pace)
    assert turns == ["quick", "slow", "quick", "quick"]
    assert row["timings"]["quick"]["runs"] == 3
    # one run of a slow contestant is enough
    assert row["timings"]["slow"]["runs"] == 1


def test_a_shorter_row_tells_what_would_take_too_long():
    shorter = (1000, {"timings": {"a": timing(0.5)}, "absent": {"b": "does not fit into memory"}})
    pace = Pace(patience=40.0)
    assert too_slow("a", 10_000, 1, pace, shorter) is None
    assert too_slow("a", 10_000, 2, pace, shorter) == "would take about 50 s"
    assert too_slow("b", 10_000, 1, pace, shorter) == "does not fit into memory at n = 1,000"
    longer = (10_000, {"timings": {}, "absent": {"b": "does not fit into memory at n = 1,000"}})
    assert too_slow("b", 100_000, 1, pace, longer) == "does not fit into memory at n = 1,000"
    assert too_slow("a", 10_000, 2, pace, None) is None
