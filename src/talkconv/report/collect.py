"""Copies the files that results/runs keeps from run folders."""

import json
import shutil
from pathlib import Path
from typing import Any

from talkconv.data.prepared import CARD as DATA_CARD
from talkconv.evaluation.score_report import outputs_path, report_path
from talkconv.files import write_json
from talkconv.report.kept_run import SPEED, SUMMARY, read_evaluations
from talkconv.report.outcome import read_outcome
from talkconv.runs.card import CARD, RunCard
from talkconv.runs.checkpoints import checkpoints_of
from talkconv.training.log_file import LOG
from talkconv.training.progress import Progress
from talkconv.training.recipe import make_recipe, read_toml
from talkconv.training.resumed_recipe import RECIPE


def collect(run: Path, kept: Path) -> None:
    """Copy the files of a run folder that the page needs into `kept`."""
    kept.mkdir(parents=True, exist_ok=True)
    for name in (RECIPE, LOG, SPEED):
        if (run / name).is_file():
            shutil.copyfile(run / name, kept / name)
    for split, evaluation in read_evaluations(run).items():
        write_json(report_path(kept, split), _without_paths(evaluation, run))
        # With its outputs, later runs can be compared with this one when its network is gone.
        if outputs_path(run, split).is_file():
            shutil.copyfile(outputs_path(run, split), outputs_path(kept, split))
    # The summary is written last, because a folder without it does not count as a run.
    write_json(kept / SUMMARY, summary_of(run))


def is_run(folder: Path) -> bool:
    """Return whether a folder holds a run that was started."""
    return (folder / CARD).is_file() and (folder / RECIPE).is_file()


def summary_of(run: Path) -> dict[str, Any]:
    """Return the progress of a run, its error if it failed, and the tokens of an epoch."""
    card = RunCard.read(run)
    recipe = make_recipe(card.recipe, read_toml(run / RECIPE))
    found = checkpoints_of(run)
    progress = Progress.read(found[-1]) if found else Progress()
    outcome = read_outcome(run)
    return {
        "step": progress.step,
        "max_steps": recipe.training.max_steps,
        "finished": progress.finished(recipe.training),
        "failure": outcome.failure,
        "machine": dict(outcome.machine),
        "tokens_per_epoch": _tokens_per_epoch(card),
    }


def _tokens_per_epoch(card: RunCard) -> int | None:
    """Return how many tokens the loss counts in an epoch, if the prepared data is still there."""
    if card.data is None or not (Path(card.data) / DATA_CARD).is_file():
        return None
    data = json.loads((Path(card.data) / DATA_CARD).read_text(encoding="utf-8"))
    train = data["splits"]["train"]
    return int(train["target_tokens"] if "target_tokens" in train else train["tokens"])


def _without_paths(evaluation: dict[str, Any], run: Path) -> dict[str, Any]:
    """Replace absolute paths of run and data by the names in the commands of the page."""
    about = dict(evaluation["about"])
    data = Path(about["data"])
    places = {about["run"]: f"runs/{run.name}", about["data"]: f"data/{data.name}"}
    about["machine"] = dict(about.get("machine") or {})
    words = str(about["machine"].get("command", "")).split()
    about["machine"]["command"] = " ".join(places.get(word, _relative(word)) for word in words)
    about |= {"run": places[about["run"]], "data": places[about["data"]]}
    return {**evaluation, "about": about}


def _relative(word: str) -> str:
    """Shorten an absolute path to its last three parts, such as runs/NAME/FILE."""
    path = Path(word)
    return "/".join(path.parts[-3:]) if path.is_absolute() else word
