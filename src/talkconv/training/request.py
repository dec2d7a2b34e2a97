"""The request to `talkconv train`, and the outcome of it."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from talkconv.runs.card import BEST, LAST
from talkconv.training.processes import processes
from talkconv.training.progress import Progress
from talkconv.training.recipe import Recipe


@dataclass(frozen=True)
class Request:
    """A training that the user asks for."""

    # the name of a shipped recipe, or the path of a TOML file
    recipe: str
    # changes to it, each section.key=value
    overrides: Sequence[str] = ()
    # the prepared data; None means that of the run, or data/RECIPE for a new run
    data: Path | None = None
    # the folder of the run; None means runs/RECIPE
    out: Path | None = None
    resume: bool = False
    # how many random starts are trained; None means one, in `out` itself
    seeds: int | None = None

    def command(self) -> str:
        """Return the command that resumes the run. It needs no overrides; the run has them."""
        words = ["talkconv", "train", self.recipe]
        if processes() > 1:
            machines = int(os.environ.get("GROUP_WORLD_SIZE", "1"))
            here = os.environ.get("LOCAL_WORLD_SIZE", str(processes()))
            several = ["--nnodes", str(machines)] if machines > 1 else []
            words = ["torchrun", *several, "--nproc-per-node", here, "-m", *words]
        for option in ("data", "out", "seeds"):
            value = getattr(self, option)
            words += [] if value is None else [f"--{option}", str(value)]
        return shlex.join([*words, "--resume"])


@dataclass(frozen=True)
class Outcome:
    """The outcome of a training: its folder, its progress and the score of its best network."""

    # the folder of the run
    out: Path
    # the recipe with all changes
    recipe: Recipe
    progress: Progress

    @property
    def finished(self) -> bool:
        """True if the run reached its end, False if Ctrl-C stopped it and it can be resumed."""
        return self.progress.finished(self.recipe.training)

    @property
    def step(self) -> int:
        """The number of steps that the run has done."""
        return self.progress.step

    @property
    def metric(self) -> str:
        """The metric by which the best network was chosen: loss, bleu or rouge."""
        return self.recipe.training.validate_by

    @property
    def best_score(self) -> float | None:
        """The best network's score on the validation set, or None before the first validation."""
        best = self.progress.best
        return None if best is None else float(best[f"eval_{self.metric}"])

    @property
    def best_step(self) -> int | None:
        """The step at which the best network was validated."""
        return self.progress.best_step

    @property
    def best(self) -> Path:
        """The folder of the best network."""
        return self.out / BEST

    @property
    def last(self) -> Path:
        """The folder of the newest network."""
        return self.out / LAST
