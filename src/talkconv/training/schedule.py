"""The optimizer, and the learning rate as a function of the step."""

import math
from collections.abc import Iterable

from torch import nn
from torch.optim import SGD, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from talkconv.training.training_settings import TrainingSettings


def learning_rate(settings: TrainingSettings, step: int) -> float:
    """Return the learning rate after `step` steps: it rises linearly, then follows the schedule.

    >>> settings = TrainingSettings(learning_rate=1e-3, warmup_steps=100, warmup_from=0.0)
    >>> learning_rate(settings, 50), learning_rate(settings, 400)
    (0.0005, 0.0005)
    """
    peak, warmup = settings.learning_rate, settings.warmup_steps
    if step < warmup:
        return settings.warmup_from + (peak - settings.warmup_from) * step / warmup
    if settings.schedule == "inverse_sqrt":
        return peak * math.sqrt(max(warmup, 1) / max(step, 1))
    share = min(1.0, (step - warmup) / (settings.max_steps - warmup))
    low = settings.final_learning_rate
    return low + (peak - low) * (1 + math.cos(math.pi * share)) / 2


def make_schedule(optimizer: Optimizer, settings: TrainingSettings) -> LambdaLR:
    return LambdaLR(optimizer, lambda step: learning_rate(settings, step) / settings.learning_rate)


def make_optimizer(parameters: Iterable[nn.Parameter], settings: TrainingSettings) -> Optimizer:
    if settings.optimizer == "nag":
        return SGD(parameters, lr=settings.learning_rate, momentum=settings.betas[0], nesterov=True)
    return AdamW(
        parameters,
        lr=settings.learning_rate,
        betas=settings.betas,
        eps=settings.epsilon,
        weight_decay=settings.weight_decay,
        # the fused optimizer reads each parameter once, not once for each operation
        fused=not settings.fsdp,
    )
