"""Writes the page about the runs in some folders."""

import json
from collections.abc import Sequence
from pathlib import Path

from talkconv.files import write_json
from talkconv.report.collect import collect, is_run, summary_of
from talkconv.report.kept_run import RUNS, SPEED, WINDOWS
from talkconv.report.page import write_page
from talkconv.report.plan import Plan, Windows
from talkconv.report.speed import write_speed
from talkconv.report.window_statistics import measure_windows, weights_name
from talkconv.runs.card import RunCard


def report(
    plan: Plan, folders: Sequence[Path], results: Path, *, speed: bool = False
) -> tuple[Path, list[str]]:
    """Collect the planned runs in these folders, and write the page about all collected runs.

    With `speed`, the speed of finished runs is measured first. Nothing else should run meanwhile.
    Return the page and the names of the runs that were collected now.
    """
    found = find_runs(plan, folders)
    if speed:
        # seeds do not change the speed
        for table in plan.tables:
            for row in table.rows:
                first = found.get(table.runs_of(row)[0].name)
                if first is not None and _finished(first) and not (first / SPEED).is_file():
                    write_speed(first)
    for name, run in found.items():
        collect(run, results / RUNS / name)
        for shown in plan.windows:
            if shown.run == name and _finished(run):
                keep_windows(run, results / RUNS / name, shown)
    return write_page(plan, results), list(found)


def find_runs(plan: Plan, folders: Sequence[Path]) -> dict[str, Path]:
    """Return the planned runs that are in these folders. If two have a run, the first counts."""
    places = {
        planned.name: [folder / planned.name for folder in folders] for planned in plan.runs()
    }
    return {name: run for name, runs in places.items() for run in runs[::-1] if is_run(run)}


def _finished(run: Path) -> bool:
    return bool(summary_of(run)["finished"])


def keep_windows(run: Path, kept: Path, shown: Windows) -> None:
    """Measure the windows of a run, unless this was done for the same weights and sentences."""
    path = kept / WINDOWS
    weights = weights_name(run / RunCard.read(run).model)
    if path.is_file():
        known = json.loads(path.read_text(encoding="utf-8"))
        drawn = [look["text"] for look in known["looks"]]
        if known["weights"] == weights and drawn == list(shown.sentences):
            return
    write_json(path, measure_windows(run, shown.sentences), indent=None)
