"""Trains a recipe with several random seeds, and chooses the best network."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from talkconv.files import write_json
from talkconv.runs import checkpoints
from talkconv.runs.card import BEST, RunCard
from talkconv.training.processes import process
from talkconv.training.progress import rank
from talkconv.training.recipe import read_recipe
from talkconv.training.request import Outcome, Request
from talkconv.training.train_run import train_run

REPORT = "seeds.json"


def train_seeds(request: Request, seeds: int, console: Console) -> Outcome:
    """Train OUT/seed-1 to OUT/seed-N one after the other; OUT/best is the best one's best network.

    The paper reports the test score of the seed with the best validation score. Return the outcome
    of the best seed, or of the one that Ctrl-C stopped: --resume goes on with it.
    """
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}")
    recipe = read_recipe(request.recipe, request.overrides)
    out = request.out or Path("runs") / recipe.name
    outcomes = []
    for seed in range(1, seeds + 1):
        folder = out / f"seed-{seed}"
        console.print(f"[bold]seed {seed} of {seeds}[/]", highlight=False)
        changed = replace(
            request, out=folder, overrides=[*request.overrides, f"training.seed={seed}"]
        )
        outcomes.append(train_run(changed, console))
        if not outcomes[-1].finished:
            return outcomes[-1]
    best = choose(outcomes)
    if process() == 0:
        _write(out, outcomes, best)
    _print(outcomes, best, console)
    return best


def choose(outcomes: list[Outcome]) -> Outcome:
    """Return the outcome with the best validation. If several are equal, it is the first."""
    return max(outcomes, key=lambda outcome: rank(outcome.progress.best, outcome.metric))


def _write(out: Path, outcomes: list[Outcome], best: Outcome) -> None:
    report = {
        "metric": best.metric,
        "best": best.recipe.training.seed,
        "seeds": [
            {
                "seed": outcome.recipe.training.seed,
                "score": outcome.best_score,
                "step": outcome.best_step,
            }
            for outcome in outcomes
        ],
    }
    write_json(out / REPORT, report)
    checkpoints.recover_run(out)
    checkpoints.publish(best.best, out / BEST)
    RunCard.read(best.out).write(out)


def _print(outcomes: list[Outcome], best: Outcome, console: Console) -> None:
    table = Table("seed", f"validation {best.metric}", "step", "")
    for outcome in outcomes:
        table.add_row(
            str(outcome.recipe.training.seed),
            f"{outcome.best_score:.4g}",
            str(outcome.best_step),
            "best" if outcome is best else "",
        )
    console.print(table)
