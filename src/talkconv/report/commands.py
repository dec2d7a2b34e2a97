"""The commands that make a table, as lists of words. They run in the root of a clone."""

from pathlib import Path

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
    table: Table, run: PlannedRun, split: str, *, compare: bool = True
) -> list[str]:
    """Return the command that scores a run, and compares its outputs with those of the baseline."""
    words = ["talkconv", "evaluate", f"runs/{run.name}", "--split", split]
    baseline = table.baseline_of(run)
    if compare and baseline is not None:
        words += ["--baseline", f"runs/{baseline.name}/evaluation/{split}.hypotheses"]
    return words
