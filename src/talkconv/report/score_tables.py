"""Makes tables of scores in Markdown from the files of results/runs."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from talkconv.report.kept_run import KeptRun
from talkconv.report.plan import Row, Table

Runs = Mapping[str, KeptRun]
_NOTHING = "–"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; all columns but the first are aligned to the right.

    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|--:|
    | 1 | 2 |
    """
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join(
        "|" + "|".join(each) + "|" if each[0] == "---" else "| " + " | ".join(each) + " |"
        for each in lines
    )


def score_table(table: Table, runs: Runs) -> str:
    """Return the table of scores: published rows first, then a row for each network of the plan."""
    columns = _Columns(table, runs)
    rows = [columns.published(row.label, row.score, row.parameters) for row in table.published]
    rows += [columns.trained(row) for row in table.rows]
    return markdown_table(columns.header(), rows)


class _Columns:
    """The columns that a table needs, and its cells."""

    def __init__(self, table: Table, runs: Runs) -> None:
        self.table = table
        self.runs = runs
        found = [run for row in table.rows for run in self._runs(row)]
        self.paper = any(row.paper for row in table.rows)
        self.training = any("training_tokens_per_second" in run.speed for run in found)
        self.generation = any("generation_sentences_per_second" in run.speed for run in found)
        splits = table.splits
        self.intervals = any(_interval(run.score(splits[0], table.score)) for run in found)
        self.compared = any(run.comparison(splits[0], table.score) for run in found)

    def header(self) -> list[str]:
        table = self.table
        cells = ["network", "parameters"]
        for split in table.splits:
            cells.append(f"{table.score}, {split}")
            if self.intervals:
                cells.append("95 % interval")
            if self.compared:
                cells.append(f"against {_baseline_label(table)}, {split}")
        cells += [f"{name}, {table.splits[0]}" for name in table.also]
        cells += ["paper, IWSLT"] if self.paper else []
        cells += ["trained on tokens"]
        cells += ["training tokens/s"] if self.training else []
        cells += ["sentences/s written"] if self.generation else []
        return cells

    def published(self, label: str, score: float, parameters: int | None) -> list[str]:
        cells = [label, _count(parameters), f"{score:.2f}"]
        return cells + [_NOTHING] * (len(self.header()) - len(cells))

    def trained(self, row: Row) -> list[str]:
        runs = self._runs(row)
        first = runs[0]
        cells = [_label(row, runs), _count(first.parameters)]
        for split in self.table.splits:
            cells.append(_mean([run.score(split, self.table.score) for run in runs]))
            if self.intervals:
                interval = _interval(first.score(split, self.table.score))
                cells.append(f"{interval[0]:.2f} – {interval[1]:.2f}" if interval else _NOTHING)
            if self.compared:
                cells.append(_against(first.comparison(split, self.table.score)))
        for name in self.table.also:
            cells.append(_mean([run.score(self.table.splits[0], name) for run in runs]))
        cells += [row.paper or _NOTHING] if self.paper else []
        cells += [_NOTHING if first.tokens is None else f"{first.tokens / 1e6:.1f}M"]
        cells += [_speed(runs, "training_tokens_per_second", ",.0f")] if self.training else []
        if self.generation:
            cells.append(_speed(runs, "generation_sentences_per_second", ".1f"))
        return cells

    def _runs(self, row: Row) -> list[KeptRun]:
        return [self.runs[run.name] for run in self.table.runs_of(row)]


def _label(row: Row, runs: Sequence[KeptRun]) -> str:
    """Return the label of a row, with its runs that are missing or unfinished."""
    open_runs = {run.name: run.status for run in runs if not (run.finished and run.evaluations)}
    if not open_runs:
        return row.label
    if len(runs) == 1:
        return f"{row.label} (*{runs[0].status}*)"
    return f"{row.label} (*{', '.join(f'{name}: {why}' for name, why in open_runs.items())}*)"


def _baseline_label(table: Table) -> str:
    """Return the label of the baseline up to its first comma, or all of it if others begin so."""
    label = next(row.label for row in table.rows if row.name == table.baseline)
    short = label.split(",")[0]
    alike = [row for row in table.rows if row.label.split(",")[0] == short]
    return short if len(alike) == 1 else label


def _count(parameters: int | None) -> str:
    return _NOTHING if parameters is None else f"{parameters / 1e6:.2f}M"


def _mean(scores: Sequence[Mapping[str, Any] | None]) -> str:
    """Return the mean over seeds, and each seed's score if there are several."""
    values = [float(score["value"]) for score in scores if score is not None]
    if not values:
        return _NOTHING
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{mean(values):.2f} ({', '.join(f'{value:.2f}' for value in values)})"


def _interval(score: Mapping[str, Any] | None) -> Sequence[float] | None:
    return None if score is None else score.get("interval")


def _against(comparison: Mapping[str, Any] | None) -> str:
    if comparison is None:
        return _NOTHING
    return f"{comparison['difference']:+.2f} (p = {comparison['p_value']:.3f})"


def _speed(runs: Sequence[KeptRun], name: str, form: str) -> str:
    speeds = [run.speed[name] for run in runs if name in run.speed]
    return format(speeds[0], form) if speeds else _NOTHING
