import sys

import torch

from talkconv.bench.measure import Timing, measure, peak_memory_of


def test_contestants_take_turns():
    turns = []

    def timer(run):
        """Run, and say how long it would take: a busy machine cannot disturb this clock."""
        turns.append(run())
        return {"q": 0.002, "s": 0.03}[turns[-1]]

    timings = measure(
        {"quick": lambda: "q", "slow": lambda: "s"}, seconds=0.01, turn=0.01, timer=timer
    )
    assert timings["quick"].median < timings["slow"].median
    assert timings["quick"].runs >= 15
    # quick runs several times in its turn, slow once, and neither runs all its rounds in one go
    rounds = "".join(turns)
    assert "sqq" in rounds
    assert "qqs" in rounds
    assert "ss" not in rounds[4:]


def test_spread_is_the_quartiles():
    timing = Timing.of([4.0, 1.0, 3.0, 2.0, 5.0])
    assert (timing.low, timing.median, timing.high, timing.runs) == (2.0, 3.0, 4.0, 5)
    assert Timing.of([0.5]).high == 0.5
    assert str(Timing.of([0.001])) == "1.00 (1.00–1.00)"


def test_peak_memory_sees_a_large_tensor():
    peak = peak_memory_of(lambda: torch.ones(20 << 20))
    if sys.platform == "linux":
        assert 79 << 20 < peak < 100 << 20
    else:
        assert peak is None
