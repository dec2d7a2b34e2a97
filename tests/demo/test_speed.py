import pytest
import torch

from talkconv.demo import speed
from talkconv.demo.speed import ATTENTION, DYNAMIC, OURS, Speed, measure_speed


def test_every_contestant_is_timed_at_every_length():
    told = []
    found = measure_speed((32, 8), seconds=0.001, tell=lambda: told.append(1))
    assert found.lengths == [8, 32]
    assert set(found.seconds) == {OURS, ATTENTION, DYNAMIC}
    for times in found.seconds.values():
        assert len(times) == 2
        assert min(times) > 0
    assert len(told) == 2


def test_contestants_answer_in_the_same_size():
    for name, run in speed._contestants(40).items():
        out = run()
        assert out.numel() == speed.BATCH * 40 * speed.DIM, name
        assert torch.isfinite(out).all()


def test_ratio_is_taken_at_the_greatest_length():
    found = Speed([1, 2], {OURS: [1.0, 2.0], ATTENTION: [1.0, 8.0]})
    assert found.ratio(ATTENTION) == pytest.approx(4)
