"""Trains one run: plans it, trains it, and prints the outcome."""

from rich.console import Console

from talkconv.runs.card import BEST
from talkconv.training.begin_run import plan_run
from talkconv.training.request import Outcome, Request


def train_run(request: Request, console: Console) -> Outcome:
    """Train a run to its end, or until Ctrl-C."""
    plan = plan_run(request)
    # Importing torch and transformers takes seconds. An error of the plan appears before that.
    from talkconv.training.fit import fit

    progress = fit(plan, console)
    outcome = Outcome(plan.out, plan.recipe, progress)
    if not plan.finished:
        _say(outcome, console)
    return outcome


def _say(outcome: Outcome, console: Console) -> None:
    if not outcome.finished:
        console.print(f"saved at step {outcome.step}.", highlight=False)
        return
    score = outcome.best_score
    best = "" if score is None else f", best {outcome.metric} {score:.4g}"
    at = "" if outcome.best_step is None else f" at step {outcome.best_step}"
    console.print(
        f"{outcome.step} steps{best}{at}: {outcome.out / BEST}. "
        f"Next: talkconv evaluate {outcome.out}",
        highlight=False,
        soft_wrap=True,
    )
