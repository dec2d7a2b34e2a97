"""A report of scores with their signatures, as a table and as JSON, and its place in a run."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from talkconv.evaluation.metric import CONFIDENCE, Score
from talkconv.evaluation.significance import Comparison
from talkconv.files import write_json

# the folder in a run that has its reports and outputs
EVALUATION = "evaluation"
# the names of the paper's scores in recipes -> our names
PAPER_NAMES = {
    "tokenized_bleu": "BLEU, tokenized",
    "compound_bleu": "BLEU, compounds split",
    "rouge1": "ROUGE-1 F1",
    "rouge2": "ROUGE-2 F1",
    # the paper's summaries have several sentences
    "rougeL": "ROUGE-L, sentences F1",
    "perplexity": "perplexity per word",
}


def report_path(run: Path, split: str, *, streaming: bool = False) -> Path:
    """Return the file of a run's scores. Scores of one stream have a file of their own."""
    return run / EVALUATION / f"{split}{'.streaming' if streaming else ''}.json"


def outputs_path(run: Path, split: str) -> Path:
    """Return the file of the outputs that a run's scores were computed from."""
    return run / EVALUATION / f"{split}.hypotheses"


@dataclass(frozen=True)
class ScoreReport:
    """The scores of one output."""

    title: str
    scores: Sequence[Score]
    # the paper's value of each score, by the name of the score
    paper: Mapping[str, float] = field(default_factory=dict)
    comparisons: Sequence[Comparison] = ()
    # the origin of the scores: run, model, settings, files
    about: Mapping[str, Any] = field(default_factory=dict)

    def table(self) -> Table:
        table = Table(title=self.title, title_justify="left")
        table.add_column("score", no_wrap=True)
        table.add_column("value", justify="right", no_wrap=True)
        intervals = any(score.interval for score in self.scores)
        if intervals:
            table.add_column(f"{CONFIDENCE:.0%} interval", justify="right", no_wrap=True)
        if self.paper:
            table.add_column("paper", justify="right", no_wrap=True)
        table.add_column("computed", overflow="fold")
        for score in self.scores:
            row = [score.name, f"{score.value:.2f}"]
            if intervals:
                low, high = score.interval or (None, None)
                row.append("" if low is None else f"{low:.2f} – {high:.2f}")
            if self.paper:
                value = self.paper.get(score.name)
                row.append("" if value is None else f"{value:g}")
            table.add_row(*row, score.signature)
        return table

    def comparison_table(self) -> Table:
        table = Table(title="against the baseline, paired bootstrap", title_justify="left")
        table.add_column("score", no_wrap=True)
        for name in ("value", "baseline", "change", "wins", "p"):
            table.add_column(name, justify="right", no_wrap=True)
        for each in self.comparisons:
            table.add_row(
                each.name,
                f"{each.value:.2f}",
                f"{each.baseline:.2f}",
                f"{each.difference:+.2f}",
                f"{each.wins:.0%}",
                f"{each.p_value:.3f}",
            )
        return table

    def write(self, path: Path) -> None:
        content = dict(
            title=self.title,
            scores=[asdict(score) for score in self.scores],
            paper=dict(self.paper),
            comparisons=[
                {**asdict(each), "difference": each.difference} for each in self.comparisons
            ],
            about=dict(self.about),
        )
        write_json(path, content)


def paper_scores(paper: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the scores of a recipe's [paper] section by our names.

    >>> paper_scores({"table": 3, "metric": "tokenized_bleu", "score": 35.5})
    {'BLEU, tokenized': 35.5}
    """
    if paper is None:
        return {}
    scores = {paper["metric"]: paper["score"], **paper.get("also", {})}
    return {PAPER_NAMES.get(name, name): value for name, value in scores.items()}
