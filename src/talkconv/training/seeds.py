"""`talkconv train --seeds N`: the same recipe from N random starts, and the best of them."""

from dataclasses import replace
from pathlib import Path

import torch.distributed as dist
from rich.console import Console
from rich.table import Table

from talkconv.files import write_json
from talkconv.runs import checkpoints
from talkconv.runs.card import BEST, RunCard
from talkconv.training.patience import best_validation, rank
from talkconv.training.recipe import read_recipe
from talkconv.training.train import Outcome, Request, train

REPORT = "seeds.json"


def train_seeds(request: Request, seeds: int, console: Console) -> bool:
    """Train OUT/seed-1 to OUT/seed-N one after the other; OUT/best is the best one's best network.

    Like the paper, which reports the test score of the seed with the best validation score. True
    when all are finished: what Ctrl-C stopped goes on with --resume.
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
        outcomes.append(train(changed, console))
        if not outcomes[-1].finished:
            return False
    best = choose(outcomes)
    if not dist.is_initialized() or dist.get_rank() == 0:
        _write(out, outcomes, best)
    _print(outcomes, best, console)
    return True


def choose(outcomes: list[Outcome]) -> Outcome:
    """Return the outcome with the best validation; of equal ones the first."""
    by = outcomes[0].recipe.training.validate_by
    return max(outcomes, key=lambda outcome: rank(best_validation(outcome.state), by))


def _write(out: Path, outcomes: list[Outcome], best: Outcome) -> None:
    report = {
        "metric": best.recipe.training.validate_by,
        "best": best.recipe.training.seed,
        "seeds": [
            {
                "seed": outcome.recipe.training.seed,
                "score": outcome.state.best_metric,
                "step": outcome.state.best_global_step,
            }
            for outcome in outcomes
        ],
    }
    write_json(out / REPORT, report)
    checkpoints.recover_run(out)
    checkpoints.publish(best.out / BEST, out / BEST)
    RunCard.read(best.out).write(out)


def _print(outcomes: list[Outcome], best: Outcome, console: Console) -> None:
    by = best.recipe.training.validate_by
    table = Table("seed", f"validation {by}", "step", "")
    for outcome in outcomes:
        table.add_row(
            str(outcome.recipe.training.seed),
            f"{outcome.state.best_metric:.4g}",
            str(outcome.state.best_global_step),
            "best" if outcome is best else "",
        )
    console.print(table)
