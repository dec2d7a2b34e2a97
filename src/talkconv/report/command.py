"""`talkconv report`: finds what is wrong with its arguments before torch is imported."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from talkconv.messages import one_message
from talkconv.report.plan import PLAN, read_plan
from talkconv.training import freed_memory


def report_command(
    folders: Sequence[Path], results: Path, plan: Path | None, *, speed: bool
) -> None:
    """Run report() for the command line."""
    with one_message("not reported"):
        for folder in folders:
            if not folder.is_dir():
                raise ValueError(f"{folder} must be a folder with runs in it, but does not exist")
        planned = read_plan(plan or results / PLAN)
        if speed:
            # Speed is measured as `talkconv train` has it.
            freed_memory.keep()
        from talkconv.report.report import report  # imports torch

        page, collected = report(planned, folders, results, speed=speed)
        names = ", ".join(collected) or "none"
        Console().print(f"{page}: collected runs: {names}", highlight=False, soft_wrap=True)
