"""Scores outputs that are in files. This needs neither torch nor transformers."""

from collections.abc import Sequence
from pathlib import Path

from talkconv.data.lines import Reading, read_lines
from talkconv.evaluation.metric import score
from talkconv.evaluation.protocols import RAW_PROTOCOLS, metrics_of
from talkconv.evaluation.score_report import ScoreReport
from talkconv.evaluation.significance import paired_bootstrap


def evaluate_files(
    hypotheses: Path,
    references: Path,
    protocols: Sequence[str] = RAW_PROTOCOLS,
    baseline: Path | None = None,
) -> ScoreReport:
    """Score the lines of one file against those of another. The lines are not changed."""
    files = [hypotheses, references] + ([] if baseline is None else [baseline])
    lines = {file: lines_of(file) for file in files}
    for file in files:
        if len(lines[file]) != len(lines[references]):
            raise ValueError(
                f"{file} has {len(lines[file])} lines and {references} has "
                f"{len(lines[references])}: line n of one must belong to line n of the other. Were "
                "empty lines dropped? talkconv generate keeps them"
            )
    metrics = metrics_of(protocols, lines[references])
    return ScoreReport(
        str(hypotheses),
        [score(metric, lines[hypotheses], lines[references], interval=True) for metric in metrics],
        comparisons=[
            paired_bootstrap(metric, lines[hypotheses], lines[other], lines[references])
            for other in files[2:]
            for metric in metrics
        ],
        about={"files": [str(file) for file in files], "lines": len(lines[references])},
    )


def lines_of(path: Path) -> list[str]:
    """Read all lines of a file in the same way as `talkconv prepare` does."""
    return list(read_lines(path, Reading()))
