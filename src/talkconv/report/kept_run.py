"""The files that results/runs keeps of a run: recipe, log, scores, outputs, speed and windows.

These files are small enough for a repository, and the page is made from them alone.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from talkconv.evaluation.score_report import EVALUATION
from talkconv.training.log_file import read_log
from talkconv.training.recipe import read_toml
from talkconv.training.resumed_recipe import RECIPE

# the folder of the kept runs among the results
RUNS = "runs"
SUMMARY, SPEED, WINDOWS = "summary.json", "speed.json", "windows.json"


class Point(NamedTuple):
    """A validation: the number of training tokens before it, and its result."""

    tokens: float
    value: float


@dataclass(frozen=True)
class KeptRun:
    """The files of a run in results/runs. It is empty if the run was not trained."""

    name: str
    # step, max_steps, finished, failure, tokens_per_epoch
    summary: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)
    # the reports of `talkconv evaluate`, by split
    evaluations: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    speed: Mapping[str, Any] = field(default_factory=dict)
    windows: Mapping[str, Any] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        return bool(self.summary.get("finished"))

    @property
    def status(self) -> str:
        """The progress of the run in a few words."""
        if not self.summary:
            return "not trained yet"
        if self.finished:
            return "trained" if self.evaluations else "trained, not evaluated yet"
        if self.summary.get("failure"):
            return str(self.summary["failure"])
        return f"at step {self.summary['step']:,} of {self.summary['max_steps']:,}"

    @property
    def tokens(self) -> float | None:
        """Return how many target tokens the run was trained on."""
        known = self.log and self.summary.get("tokens_per_epoch")
        return self._tokens(self.log[-1]) if known else None

    @property
    def parameters(self) -> int | None:
        for evaluation in self.evaluations.values():
            return int(evaluation["about"]["parameters"])
        return None

    @property
    def metric(self) -> str:
        """Return the metric of the curve: bleu, rouge, or perplexity if loss was validated."""
        by = str(self.recipe["training"]["validate_by"])
        return "perplexity" if by == "loss" else by

    def curve(self) -> list[Point]:
        """Return the validations of the run, the first one first."""
        if not self.summary.get("tokens_per_epoch"):
            return []
        key = "valid_loss" if self.metric == "perplexity" else f"valid_{self.metric}"
        change = math.exp if self.metric == "perplexity" else float
        return [Point(self._tokens(line), change(line[key])) for line in self.log if key in line]

    def score(self, split: str, name: str) -> dict[str, Any] | None:
        """Return a score by its name, with its interval, if the run is finished and has it."""
        return self._named(split, "scores", name)

    def comparison(self, split: str, name: str) -> dict[str, Any] | None:
        """Return the paired bootstrap of a score against the baseline."""
        return self._named(split, "comparisons", name)

    def _named(self, split: str, kind: str, name: str) -> dict[str, Any] | None:
        found = self.evaluations.get(split, {}).get(kind, []) if self.finished else []
        return next((each for each in found if each["name"] == name), None)

    def _tokens(self, line: Mapping[str, Any]) -> float:
        return float(line["epoch"]) * float(self.summary["tokens_per_epoch"])


def read_kept(folder: Path) -> KeptRun:
    """Read the files of a run. If the folder does not exist, the run was not trained."""
    if not (folder / SUMMARY).is_file():
        return KeptRun(folder.name)
    return KeptRun(
        folder.name,
        _json(folder / SUMMARY),
        read_toml(folder / RECIPE),
        read_log(folder),
        read_evaluations(folder),
        _json(folder / SPEED),
        _json(folder / WINDOWS),
    )


def read_evaluations(folder: Path) -> dict[str, dict[str, Any]]:
    """Read the reports of `talkconv evaluate` in a run, by split."""
    return {path.stem: _json(path) for path in sorted((folder / EVALUATION).glob("*.json"))}


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
