"""`talkconv plan` estimates the time and memory of a training, on this machine and on GPUs."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from talkconv.bench.data_sheets import GPUS, Sheet
from talkconv.bench.page.markdown import number, table
from talkconv.bench.training_cost import PROCESSES, SENTENCE, SUMMARY, Cost, cost_of
from talkconv.files import write_text
from talkconv.machine import describe_machine
from talkconv.messages import one_message
from talkconv.training.recipe import read_recipe, recipe_names

# The share of its peak that a GPU reaches in such a training, and the share of that speed that each
# of eight GPUs keeps.
PEAK_SHARE, SCALING = 0.3, 0.9
COUNTS = (1, 8)


def gpu_hours(cost: Cost, sheet: Sheet, count: int) -> float:
    """Return the hours of a whole training on so many GPUs."""
    share = PEAK_SHARE * (SCALING if count > 1 else 1.0)
    return cost.operations / (sheet.flops * share * count) / 3600


def fits(cost: Cost, sheet: Sheet) -> bool:
    """Return whether one process of the training fits into the memory of a GPU."""
    return cost.memory <= sheet.memory


def plan_command(recipe: str | None, overrides: Sequence[str], out: Path | None) -> None:
    """Print the plan of one recipe, or write those of all shipped ones to a page."""
    console = Console()
    with one_message("not planned", interrupted="nothing was planned"):
        if recipe is not None:
            print_plan(cost_of(read_recipe(recipe, overrides)), console)
            return
        if out is None:
            raise ValueError("name a recipe, or give --out FILE for a page about all of them")
        costs = []
        for name in recipe_names():
            console.print(f"planning {name}", highlight=False)
            # The networks for eight processes take minutes for more tokens.
            batch = {"tokens": 128, "steps": 1} if name in PROCESSES else {"tokens": 2000}
            costs.append(cost_of(read_recipe(name), **batch))
        write_text(out, page(costs))
        console.print(f"written: {out}", highlight=False, soft_wrap=True)


def print_plan(cost: Cost, console: Console) -> None:
    """Print the plan of one recipe as tables."""
    facts = Table(title=f"{cost.recipe}: estimates", title_justify="left", show_header=False)
    for name, value in facts_of(cost).items():
        facts.add_row(name, value)
    console.print(facts)
    gpus = Table(title=_assumption(), title_justify="left")
    for heading in ("GPU", "fits", "hours on one", "hours on eight", "source"):
        gpus.add_column(heading)
    for sheet in GPUS:
        hours = (hours_in_words(gpu_hours(cost, sheet, count)) for count in COUNTS)
        gpus.add_row(sheet.name, "yes" if fits(cost, sheet) else "no", *hours, sheet.source)
    console.print(gpus)


def hours_in_words(value: float) -> str:
    """Return hours with two digits, because an estimate has no more.

    >>> hours_in_words(0.0001), hours_in_words(12.345)
    ('< 0.1', '12')
    """
    return "< 0.1" if value < 0.1 else number(float(f"{value:.2g}"))


def facts_of(cost: Cost) -> dict[str, str]:
    """Return the facts of a plan that do not depend on a GPU."""
    gib = float(1 << 30)
    return {
        "parameters": f"{cost.parameters / 1e6:.1f} million",
        "operations a token, forward": f"{cost.forward / 1e6:,.0f} million",
        "operations a token, backward": f"{cost.backward / 1e6:,.0f} million",
        "weights and gradients": f"{cost.weights / gib:.2f} GiB",
        "optimizer": f"{cost.optimizer / gib:.2f} GiB",
        f"activations of {cost.batch:,} tokens": f"{cost.activations * cost.batch / gib:.2f} GiB",
        "tokens in all": f"{cost.tokens / 1e6:,.0f} million",
        "hours here, in float32": hours_in_words(cost.tokens * cost.seconds / 3600),
    }


def _assumption() -> str:
    return (
        f"GPUs at {PEAK_SHARE:.0%} of the half-precision peak of their data sheets; eight of them "
        f"at {SCALING:.0%} of eight times that"
    )


def page(costs: Sequence[Cost]) -> str:
    """Return the page of the guide about all recipes."""
    machine = describe_machine()
    gib = float(1 << 30)
    sizes = [
        [
            f"`{cost.recipe}`",
            f"{cost.parameters / 1e6:.1f}",
            f"{cost.forward / 1e6:,.0f}",
            f"{cost.backward / 1e6:,.0f}",
            f"{(cost.weights + cost.optimizer) / gib:.2f}",
            f"{cost.activations * cost.batch / gib:.2f}",
            number(cost.tokens / 1e6),
            hours_in_words(cost.tokens * cost.seconds / 3600),
        ]
        for cost in costs
    ]
    hours = [[f"`{cost.recipe}`", *(_cell(cost, sheet) for sheet in GPUS)] for cost in costs]
    headings = ["recipe", "parameters, M", "forward, M a token", "backward, M a token"]
    headings += ["weights and optimizer, GiB", "activations, GiB", "tokens, M", "hours here"]
    sources = "\n".join(f"- {sheet.name}: {sheet.source}" for sheet in GPUS)
    return f"""# What will my training take?

`talkconv plan RECIPE` estimates it before the data is there. **Everything on this page is an
estimate.** Operations (matrix products and attention) and activations are counted on a small batch;
sentences are taken to have {SENTENCE} tokens and summaries {SUMMARY}. A token is one of the longer
side of a batch.

```bash
talkconv plan iwslt14_de_en                    # one recipe
talkconv plan my.toml training.tokens=2000     # your own, with changes
talkconv plan --out docs/plan.md               # this page
```

"Hours here" are from one or two timed steps in float32 on {machine["processor"]}
({machine["threads"]} of {machine["cores"]} cores, {machine["date"]}).

{table(headings, sizes)}

## Hours on GPUs

{_assumption()}. Each cell has the hours on one and on eight GPUs; "–" says that a batch does not
fit into the memory.

{table(["recipe", *(sheet.name for sheet in GPUS)], hours)}

Peaks and memory are from:

{sources}
"""


def _cell(cost: Cost, sheet: Sheet) -> str:
    if not fits(cost, sheet):
        return "–"
    return " / ".join(hours_in_words(gpu_hours(cost, sheet, count)) for count in COUNTS)
