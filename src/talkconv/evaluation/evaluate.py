"""`talkconv evaluate`: the scores of a run, or of outputs in files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from talkconv.evaluation.evaluate_files import evaluate_files
from talkconv.evaluation.evaluate_run import evaluate_run
from talkconv.evaluation.protocols import RAW_PROTOCOLS
from talkconv.evaluation.score_report import ScoreReport, report_path
from talkconv.messages import one_message
from talkconv.runs.find_network import find_network


def evaluate_command(
    run: Path | None,
    *,
    hypotheses: Path | None,
    references: Path | None,
    protocols: Sequence[str] | None,
    split: str,
    **options: Any,
) -> None:
    """Run evaluate_run() or evaluate_files() for the command line.

    `options` are those of evaluate_run().
    """
    with one_message("not evaluated"):
        if run is None and hypotheses is not None and references is not None:
            _print(
                evaluate_files(
                    hypotheses, references, protocols or RAW_PROTOCOLS, options["baseline"]
                )
            )
        elif run is not None and hypotheses is None and references is None:
            if protocols:
                raise ValueError(
                    "a run is scored by all protocols of its task: leave out --protocol"
                )
            if "open_folder" not in options:
                # Importing torch takes seconds. A wrong folder raises an error before that.
                find_network(run, options["model"])
            _print(evaluate_run(run, split, **options))
            written = report_path(run, split, streaming=options["streaming"])
            Console().print(f"written: {written}", highlight=False, soft_wrap=True)
        else:
            raise ValueError(
                "give a run (talkconv evaluate RUN), or files (--hypotheses F --references F)"
            )


def _print(report: ScoreReport) -> None:
    console = Console()
    console.print(report.table())
    for each in report.scores:
        console.print(f"{each.signature}: {each.text}", highlight=False, soft_wrap=True)
    if report.comparisons:
        console.print(report.comparison_table())
