"""`talkconv.train` trains a network with a recipe and prepared data."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from talkconv.training.processes import process
from talkconv.training.recipe import as_override
from talkconv.training.request import Outcome, Request
from talkconv.training.seeds import train_seeds
from talkconv.training.train_run import train_run

Overrides = Mapping[str, Any] | Sequence[str]


def train(
    recipe: str | Path,
    overrides: Overrides = (),
    *,
    data: str | Path | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    seeds: int | None = None,
    quiet: bool = False,
) -> Outcome:
    """Train the network of a recipe, as `talkconv train` does, and return the outcome.

    `recipe` is the name of a shipped recipe or the path of a TOML file; `overrides` change its
    settings, as {"training.max_steps": 1000} or ["training.max_steps=1000"]. `data` is the folder
    that `talkconv prepare` wrote. Its default is data/RECIPE, or the data of the run that is
    resumed. `out` is the folder of the run, by default runs/RECIPE. With `seeds`, the network is
    trained with several random seeds, and the outcome is that of the best one.

    Wrong arguments raise a ValueError, and a full disk an OSError. The first Ctrl-C saves the run
    and returns an outcome that is not `finished`; resume=True continues exactly from there.

    >>> outcome = train("toy", {"training.max_steps": 500}, quiet=True)  # doctest: +SKIP
    >>> outcome.metric, outcome.best_score, outcome.best  # doctest: +SKIP
    ('bleu', 41.2, PosixPath('runs/toy/best'))
    """
    if isinstance(overrides, Mapping):
        overrides = [as_override(key, value) for key, value in overrides.items()]
    request = Request(
        str(recipe),
        list(overrides),
        None if data is None else Path(data),
        None if out is None else Path(out),
        resume,
        seeds,
    )
    return train_request(request, Console(quiet=quiet or process() > 0))


def train_request(request: Request, console: Console) -> Outcome:
    """Train one run, or one for each seed."""
    if request.seeds is not None:
        return train_seeds(request, request.seeds, console)
    return train_run(request, console)
