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
    """Settings that say how a network is trained.

    The comment above each setting is its explanation in docs/settings.md and recipes/toy.toml,
    which `make settings` writes.

    >>> TrainingSettings(tokens=3584, accumulation=16).schedule
    'inverse_sqrt'
    """

    # Another seed gives other initial weights and another order of the text. `--seeds 5` trains
    # five networks with five seeds.
    seed: int = 1
    # The most tokens that a batch of one process has on its longer side, padding included.
    tokens: int = 4000
    # The number of batches of each process in one step. N processes with k batches each are like
    # one process with N * k batches.
    accumulation: int = 1
    # Training ends after so many steps.
    max_steps: int = 50_000

    # The optimizer is "adam", or "nag" for gradient descent with Nesterov's momentum.
    optimizer: Optimizer = "adam"
    # The two betas of Adam. "nag" takes the first for its momentum.
    betas: tuple[float, float] = (0.9, 0.999)
    # The number that Adam adds to its denominator.
    epsilon: float = 1e-8
    # Each step shrinks the weights by this times the learning rate, apart from the gradient.
    weight_decay: float = 0.0
    # Gradients with a larger norm are scaled down to this norm. With 0 they are not.
    clip: float = 0.0

    # How the learning rate falls after the warm-up. "inverse_sqrt" falls without an end; "cosine"
    # reaches final_learning_rate at max_steps.
    schedule: Schedule = "inverse_sqrt"
    # The highest learning rate, which is reached at the end of the warm-up.
    learning_rate: float = 1e-3
    # The number of steps in which the learning rate rises to its highest.
    warmup_steps: int = 4000
    # The learning rate at the start of the warm-up.
    warmup_from: float = 1e-7
    # The learning rate at the end of the cosine. "inverse_sqrt" does not use it.
    final_learning_rate: float = 1e-7
    # The precision of matrix products: "fp32", or autocast to "bf16" or (on a GPU) "fp16".
    precision: Precision = "fp32"
    # With true, parameters, gradients and optimizer are spread over the processes of torchrun.
    fsdp: bool = False

    # The number of steps between validations.
    validate_every: int = 1000
    # The best network is chosen by "loss", or by "bleu" or "rouge" of generated texts.
    validate_by: ValidateBy = "loss"
    # The number of texts of the validation set that are generated for "bleu" and "rouge". With
    # "none", all are.
    validate_limit: int | None = None
    # Training ends after so many validations without a better one. With "none", it goes on to
    # max_steps.
    patience: int | None = None
    # The number of steps between checkpoints.
    save_every: int = 1000
    # The number of checkpoints that are kept, which are the last ones. `talkconv average` averages
    # them.
    keep: int = 2
    # The number of steps between lines of log.jsonl, and between two losses on the screen.
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
