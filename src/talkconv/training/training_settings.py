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
    """How a network is trained; recipes/toy.toml tells what each setting does.

    >>> TrainingSettings(tokens=3584, accumulation=16).schedule
    'inverse_sqrt'
    """

    seed: int = 1
    # of a batch on its longer side, padding included, for each process
    tokens: int = 4000
    # batches of each process for one step
    accumulation: int = 1
    max_steps: int = 50_000

    optimizer: Optimizer = "adam"
    # Adam's two; "nag" takes the first for its momentum
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    # apart from the gradient, as a share of the learning rate
    weight_decay: float = 0.0
    # the norm that gradients are scaled down to; 0: as they are
    clip: float = 0.0

    schedule: Schedule = "inverse_sqrt"
    # the highest, where the warm-up ends
    learning_rate: float = 1e-3
    warmup_steps: int = 4000
    warmup_from: float = 1e-7
    # where the cosine ends, at max_steps
    final_learning_rate: float = 1e-7
    precision: Precision = "fp32"
    # parameters, gradients and optimizer spread over the processes
    fsdp: bool = False

    validate_every: int = 1000
    # what the best network is chosen by
    validate_by: ValidateBy = "loss"
    # sentences that are generated for "bleu" and "rouge"; None: all
    validate_limit: int | None = None
    # validations without a better one, after which training ends; None: never
    patience: int | None = None
    save_every: int = 1000
    # how many of the last checkpoints stay
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
                "training.weight_decay must be 0 with optimizer 'nag', which has none of its own, "
                f"got {self.weight_decay}"
            )
        if self.schedule == "cosine" and self.warmup_steps >= self.max_steps:
            raise ValueError(
                "training.warmup_steps must be below max_steps, since the cosine stands between "
                f"them, got {self.warmup_steps} and {self.max_steps}"
            )
        if self.fsdp and self.validate_by != "loss":
            raise ValueError(
                "training.fsdp spreads the network over processes, which cannot write sentences "
                f"each on their own: training.validate_by must be 'loss', got {self.validate_by!r}"
            )


# what a run may be given anew when it goes on. Accumulation is among them for the sake of another
# number of processes
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
