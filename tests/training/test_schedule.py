import math

import pytest
import torch

from talkconv.training.schedule import learning_rate, make_optimizer, make_schedule
from talkconv.training.training_settings import TrainingSettings


def test_the_rate_rises_in_a_line_from_its_start_to_the_peak():
    settings = TrainingSettings(learning_rate=1e-3, warmup_steps=10, warmup_from=1e-7)
    assert learning_rate(settings, 0) == 1e-7
    assert learning_rate(settings, 5) == pytest.approx((1e-3 + 1e-7) / 2)
    assert learning_rate(settings, 10) == 1e-3


def test_inverse_square_root():
    settings = TrainingSettings(learning_rate=1e-3, warmup_steps=100)
    assert learning_rate(settings, 400) == pytest.approx(1e-3 / 2)
    assert learning_rate(settings, 10_000) == pytest.approx(1e-3 / 10)


def test_cosine_ends_at_the_last_step():
    settings = TrainingSettings(
        schedule="cosine", warmup_steps=10, max_steps=30, learning_rate=1.0, final_learning_rate=0.2
    )
    assert learning_rate(settings, 10) == 1.0
    assert learning_rate(settings, 20) == pytest.approx(0.6)
    assert learning_rate(settings, 15) == pytest.approx(0.2 + 0.4 * (1 + math.cos(math.pi / 4)))
    assert learning_rate(settings, 30) == pytest.approx(0.2)
    # a run that goes on beyond it stays there
    assert learning_rate(settings, 40) == pytest.approx(0.2)


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine"])
def test_no_warmup_begins_at_the_peak(schedule):
    settings = TrainingSettings(schedule=schedule, warmup_steps=0, learning_rate=0.5, max_steps=9)
    assert learning_rate(settings, 0) == 0.5


def test_the_schedule_sets_the_optimizer_s_rate():
    settings = TrainingSettings(learning_rate=1e-2, warmup_steps=4, max_steps=10, schedule="cosine")
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = make_optimizer([weight], settings)
    schedule = make_schedule(optimizer, settings)
    for step in range(10):
        assert optimizer.param_groups[0]["lr"] == pytest.approx(learning_rate(settings, step))
        optimizer.step()
        schedule.step()


def stepped(grads: list[float], **changes) -> float:
    settings = TrainingSettings(learning_rate=0.1, **changes)
    weight = torch.nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    optimizer = make_optimizer([weight], settings)
    for grad in grads:
        weight.grad = torch.tensor([grad], dtype=torch.float64)
        optimizer.step()
    return weight.item()


def test_adam_by_hand():
    # the first step is the rate itself, whatever the gradient; decay takes its share of the weight
    assert stepped([3.0]) == pytest.approx(1 - 0.1)
    assert stepped([3.0], weight_decay=0.5) == pytest.approx(1 - 0.1 * 0.5 - 0.1)


def test_adam_follows_its_settings():
    # both means forget half of what they hold: the corrected ones are 1 and 1, then 7/3 and 19/3
    first, second = 1 / (1 + 1), (7 / 3) / ((19 / 3) ** 0.5 + 1)
    found = stepped([1.0, 3.0], betas=(0.5, 0.5), epsilon=1.0)
    assert found == pytest.approx(1 - 0.1 * first - 0.1 * second)


def test_nesterov_by_hand():
    # velocity 2, then 0.5 * 2 + 1; each step goes by the gradient and half of the new velocity
    nag = dict(optimizer="nag", betas=(0.5, 0.999))
    assert stepped([2.0], **nag) == pytest.approx(1 - 0.1 * (2 + 0.5 * 2))
    assert stepped([2.0, 1.0], **nag) == pytest.approx(1 - 0.1 * 3 - 0.1 * (1 + 0.5 * 2))
