"""`talkconv tune` chooses the number of averaged checkpoints and the length penalty.

It tries them on the validation set.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from talkconv.conventions import LANGUAGE_MODELLING
from talkconv.data.prepared import Prepared
from talkconv.evaluation.bleu import corpus_bleu
from talkconv.evaluation.evaluate_run import data_of, generation_settings
from talkconv.evaluation.perplexity import perplexity
from talkconv.evaluation.rouge import rouge
from talkconv.generation.text_generator import TextGenerator
from talkconv.messages import one_message
from talkconv.runs.card import AVERAGED, BEST, RunCard
from talkconv.runs.checkpoints import checkpoints_of
from talkconv.runs.generation_config import write_generation_configs
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.runs.open_run import Run, open_run
from talkconv.training.average import last_checkpoints, write_average

LENGTH_PENALTIES = (0.2, 0.6, 1.0, 1.4, 1.8)
CHECKPOINTS = (1, 3, 5, 10)
# If this process is killed, the next training removes a folder with this name.
_TRIAL = ".tune.unfinished"


@dataclass(frozen=True)
class Trial:
    """A choice of settings, and its score. A larger score is better."""

    # how many of the last checkpoints are averaged; 0 means the best network, not averaged
    checkpoints: int
    # None for language models, because their score needs no generation
    length_penalty: float | None
    score: float

    @property
    def model(self) -> str:
        return f"mean of {self.checkpoints}" if self.checkpoints else BEST


def tune(
    run: Path,
    *,
    length_penalties: Sequence[float] = LENGTH_PENALTIES,
    checkpoints: Sequence[int] | None = None,
    lines: int | None = None,
    data: Path | None = None,
    tell: Callable[[Trial], object] = lambda trial: None,
) -> list[Trial]:
    """Try all choices on the validation set, and make the best one the run's default.

    Return all trials, the best first. With `lines`, only about so many lines of the validation set
    are used, evenly spread. `checkpoints` are the numbers of checkpoints to average; None means 1,
    3, 5 and 10, as far as the run has them.
    """
    card = RunCard.read(run)
    there = len(checkpoints_of(run))
    counts = [count for count in CHECKPOINTS if count <= there]
    counts = [0, *(counts if checkpoints is None else checkpoints)]
    for count in counts[1:]:
        last_checkpoints(run, count)
    trials = []
    for count in counts:
        opened = _open(run, count)
        try:
            for trial in _trials(opened, count, data_of(opened, data), length_penalties, lines):
                tell(trial)
                trials.append(trial)
        finally:
            shutil.rmtree(run / _TRIAL, ignore_errors=True)
    # The sort is stable: of equal scores, the one with fewer checkpoints and a smaller penalty
    # comes first, because it was tried first.
    trials.sort(key=lambda trial: -trial.score)
    _choose(run, card, trials[0])
    return trials


def _open(run: Path, count: int) -> Run:
    if not count:
        return open_run(run, BEST)
    write_average(run, last_checkpoints(run, count), run / _TRIAL)
    return open_run(run, _TRIAL)


def _trials(
    run: Run, count: int, prepared: Prepared, penalties: Sequence[float], lines: int | None
) -> list[Trial]:
    if run.card.task == LANGUAGE_MODELLING:
        return [Trial(count, None, -_perplexity(run, prepared))]
    sources, references = prepared.texts("valid")
    step = 1 if lines is None else max(1, len(sources) // lines)
    sources, references = sources[::step], references[::step]
    settings = generation_settings(run, prepared)
    return [
        Trial(count, each, _score(run, sources, references, replace(settings, length_penalty=each)))
        for each in penalties
    ]


def _perplexity(run: Run, prepared: Prepared) -> float:
    model: Any = run.model
    tokens = [token for row in prepared.split("valid")["tokens"] for token in row]
    block = prepared.settings.block
    return perplexity(model, tokens, block=block, context=block // 2).per_token


def _score(
    run: Run, sources: Sequence[str], references: Sequence[str], settings: GenerationSettings
) -> float:
    """Return tokenized BLEU, or the mean of ROUGE-1, -2 and -L."""
    generator = TextGenerator(run.model, run.tokenizer, settings, run.target_tokenizer)
    outputs = [output for (output,) in generator.outputs(sources)]
    if run.card.task == "summarization":
        scores = rouge([output.text for output in outputs], references)
        return sum(score.value for score in scores) / len(scores)
    tokenizer: Any = run.target_tokenizer
    return corpus_bleu(
        [tokenizer.decode_tokenized(output.tokens) for output in outputs],
        [tokenizer.tokenized_text(line) for line in references],
        "tokenized",
    ).value


def _choose(run: Path, card: RunCard, trial: Trial) -> None:
    """Write the default settings of generate and evaluate for this run."""
    if trial.checkpoints:
        write_average(run, last_checkpoints(run, trial.checkpoints), run / AVERAGED)
    generation = card.generation.changed({"length_penalty": trial.length_penalty})
    model = AVERAGED if trial.checkpoints else BEST
    replace(card, model=model, generation=generation).write(run)
    write_generation_configs(run)


def grid(trials: Sequence[Trial], task: str) -> Table:
    """Return a table with a row for each model and a column for each penalty. The best is bold."""
    names = {"translation": "tokenized BLEU", "summarization": "mean ROUGE"}
    table = Table(title=f"{names.get(task, 'perplexity')} on valid", title_justify="left")
    tried = sorted({t.length_penalty for t in trials if t.length_penalty is not None})
    penalties: Sequence[float | None] = tried or [None]
    table.add_column("model")
    for penalty in penalties:
        table.add_column("" if penalty is None else f"penalty {penalty:g}", justify="right")
    found = {(t.checkpoints, t.length_penalty): t.score for t in trials}
    best = trials[0]
    for count in sorted({t.checkpoints for t in trials}):
        cells = []
        for penalty in penalties:
            chosen = (count, penalty) == (best.checkpoints, best.length_penalty)
            value = f"{abs(found[count, penalty]):.2f}"
            cells.append(f"[bold]{value}[/]" if chosen else value)
        table.add_row(Trial(count, None, 0.0).model, *cells)
    return table


def tune_command(run: Path, **options: Any) -> None:
    """Tune a run for the command line."""
    console = Console()

    def tell(trial: Trial) -> None:
        penalty = "" if trial.length_penalty is None else f", penalty {trial.length_penalty:g}"
        console.print(f"{trial.model}{penalty}: {abs(trial.score):.2f}", highlight=False)

    with one_message("not tuned"):
        trials = tune(run, tell=tell, **options)
        card = RunCard.read(run)
        console.print(grid(trials, card.task))
        console.print(
            f"{run / 'run.json'} now says model = {card.model}, "
            f"length_penalty = {card.generation.length_penalty:g}",
            highlight=False,
            soft_wrap=True,
        )
