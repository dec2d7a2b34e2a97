"""The commands that make a table, as lists of words. They run in the root of a clone."""

from pathlib import Path

from talkconv.evaluation.score_report import outputs_path
from talkconv.report.plan import PlannedRun, Table


def prepare_command(table: Table, raw: Path) -> list[str]:
    """Return the command that prepares the data of a table. `raw` has the text of all corpora."""
    return ["talkconv", "prepare", table.recipe, "--raw", str(raw / table.raw)]


def commands_of(table: Table, run: PlannedRun) -> list[list[str]]:
    """Return the commands that train a run, choose its network and score it."""
    commands = [train_command(run)]
    if table.average:
        commands.append(tune_command(table, run))
    return commands + [evaluate_command(table, run, split) for split in table.splits]


def train_command(run: PlannedRun) -> list[str]:
    """Return the command that trains a run."""
    return ["talkconv", "train", run.recipe, *run.overrides, "--out", f"runs/{run.name}"]


def tune_command(table: Table, run: PlannedRun) -> list[str]:
    """Return the command that chooses a network and a length penalty on the validation set.

    The network is the best checkpoint or the mean of the last ones.
    """
    words = ["talkconv", "tune", f"runs/{run.name}", "--checkpoints", str(table.average)]
    for penalty in table.length_penalties:
        words += ["--length-penalty", str(penalty)]
    return words


def evaluate_command(
    table: Table, run: PlannedRun, split: str, *, baselines: str | None = "runs"
) -> list[str]:
    """Return the command that scores a run, and compares its outputs with those of the baseline.

    The run of the baseline lies in the folder `baselines`. With None, nothing is compared.
    """
    words = ["talkconv", "evaluate", f"runs/{run.name}", "--split", split]
    baseline = table.baseline_of(run)
    if baselines is not None and baseline is not None:
        words += ["--baseline", str(outputs_path(Path(baselines) / baseline.name, split))]
    return words
