"""TrainingSettings: the [training] section of a recipe, and the only home of its defaults."""

from dataclasses import dataclass, fields
from typing import Literal

Schedule = Literal["inverse_sqrt", "cosine"]
Optimizer = Literal["adam", "nag"]
Precision = Literal["fp32", "bf16", "fp16"]
ValidateBy = Literal["loss", "bleu", "rouge"]

_POSITIVE = (
    "tokens",
    "accumulation",
    "max_steps",
    "learning_rate",
    "epsilon",
    "validate_every",
    "save_every",
    "keep",
    "log_every",
)
_NOT_NEGATIVE = (
    "seed",
    "warmup_steps",
    "warmup_from",
    "final_learning_rate",
    "weight_decay",
    "clip",
)


@dataclass(frozen=True)
class TrainingSettings:
    """The settings of a training. recipes/toy.toml explains each of them.

    >>> TrainingSettings(tokens=3584, accumulation=16).schedule
    'inverse_sqrt'
    """

    seed: int = 1
    # the largest number of tokens in a batch of one process, padding included: the longer of the
    # source and the target side counts
    tokens: int = 4000
    # the number of batches that each process adds up for one step
    accumulation: int = 1
    max_steps: int = 50_000

    optimizer: Optimizer = "adam"
    # the two of Adam; the momentum of "nag" is the first
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    # decoupled from the gradient, and multiplied by the learning rate
    weight_decay: float = 0.0
    # larger gradients are scaled down to this norm; 0 means no clipping
    clip: float = 0.0

    schedule: Schedule = "inverse_sqrt"
    # the highest rate, at the end of the warm-up
    learning_rate: float = 1e-3
    warmup_steps: int = 4000
    warmup_from: float = 1e-7
    # the rate at the end of a cosine schedule, at max_steps
    final_learning_rate: float = 1e-7
    precision: Precision = "fp32"
    # whether parameters, gradients and optimizer are spread over the processes
    fsdp: bool = False

    validate_every: int = 1000
    # the metric by which the best network is chosen
    validate_by: ValidateBy = "loss"
    # the number of sentences to generate for "bleu" and "rouge"; None means all
    validate_limit: int | None = None
    # training ends after this many validations without a better result; None means that it goes
    # on to max_steps
    patience: int | None = None
    save_every: int = 1000
    # the number of checkpoints to keep
    keep: int = 2
    log_every: int = 100

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise ValueError(f"training.{name} must be above 0, got {getattr(self, name)}")
        for name in _NOT_NEGATIVE:
            if not getattr(self, name) >= 0:
                raise ValueError(f"training.{name} must be at least 0, got {getattr(self, name)}")
        for name in ("validate_limit", "patience"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ValueError(
                    f"training.{name} must be at least 1, or left out, got {getattr(self, name)}"
                )
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"training.betas must be in [0, 1), got {self.betas}")
        if self.optimizer == "nag" and self.weight_decay:
            raise ValueError(
                "training.weight_decay must be 0 with optimizer 'nag', which does not support it, "
                f"got {self.weight_decay}"
            )
        if self.schedule == "cosine" and self.warmup_steps >= self.max_steps:
            raise ValueError(
                "training.warmup_steps must be below max_steps, since the cosine goes from one to "
                f"the other, got {self.warmup_steps} and {self.max_steps}"
            )
        if self.fsdp and self.validate_by != "loss":
            raise ValueError(
                "training.fsdp spreads the network over processes, and none of them can generate "
                f"text alone: training.validate_by must be 'loss', got {self.validate_by!r}"
            )


# The settings that may change when a run is resumed. Accumulation is one of them, so that a run can
# go on with another number of processes.
CHANGEABLE = frozenset(
    {
        "accumulation",
        "max_steps",
        "validate_every",
        "patience",
        "save_every",
        "keep",
        "log_every",
    }
)
assert {field.name for field in fields(TrainingSettings)} >= CHANGEABLE
