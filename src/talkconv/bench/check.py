"""`talkconv bench check` measures for two minutes and fails if something became slower.

It compares with a committed result.
"""

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from talkconv.bench.compare import FOREIGN, Change, changes, machine_speed
from talkconv.bench.everything import chosen_parts, default_folder, measure_parts
from talkconv.bench.part import Part
from talkconv.bench.store import read_folder
from talkconv.messages import one_message

PARTS = ("throughput", "networks", "generation")


def losses(found: Sequence[Change], most: float) -> list[Change]:
    """Return our own timings that became slower by more than `most`, beyond the noise."""
    lost = []
    for each in found:
        speed = speed_beside(each, found)
        is_slower = each.ratio / speed > 1 + most and each.is_clear(speed)
        if each.name not in FOREIGN and is_slower:
            lost.append(each)
    return lost


def speed_beside(judged: Change, found: Sequence[Change]) -> float:
    """Return how many times as long the machine took while a timing was measured.

    The contestants of the same row that run no code of this package measure it. In a row that has
    none, the machine may have been slow for that minute alone, so all other contestants of the row
    measure it too. A loss that they share is then found only in the rows that have foreign ones.
    """
    beside = [each for each in found if each.row == judged.row and each.name != judged.name]
    if any(each.name in FOREIGN for each in beside):
        return machine_speed(beside)
    row = statistics.median(each.ratio for each in beside) if beside else 0.0
    # The larger one, because the others of the row may have become faster.
    return max(machine_speed(found), row)


def bench_check(
    against: Annotated[
        Path | None, typer.Option(help="A folder of results.", show_default="results/MACHINE")
    ] = None,
    most: Annotated[float, typer.Option(help="The share of speed that may be lost.")] = 0.2,
) -> None:
    """Measure for two minutes and fail if something became slower than in a committed result."""
    with one_message("not checked", interrupted="nothing was checked"):
        is_well = check(against, most, Console())
    if not is_well:
        raise typer.Exit(1)


def check(against: Path | None, most: float, console: Console) -> bool:
    """Measure, compare, and measure again what seems slower. Return whether nothing is."""
    folder = against or default_folder(quick=False)
    if not folder.is_dir():
        raise ValueError(
            f"{folder} must have the committed results of this machine; `talkconv bench all` "
            "writes them, and --against names another folder"
        )
    committed = read_folder(folder)
    parts = chosen_parts(PARTS, quick=True)
    with tempfile.TemporaryDirectory() as here:
        measure_parts(Path(here), parts, console, quick=True, fresh=True)
        measured = read_folder(Path(here))
    lost = losses(list(changes(committed, measured)), most)
    if lost:
        console.print(f"{len(lost)} timings seem slower; measuring their rows again")
        again(parts, {(each.part, each.row) for each in lost}, measured)
        lost = losses(list(changes(committed, measured)), most)
    found = list(changes(committed, measured))
    for each in lost:
        speed = speed_beside(each, found)
        console.print(
            f"[bold red]slower:[/] {each.row}: {each.name}: {each.after} ms, {each.before} ms in "
            f"{folder}; {each.ratio / speed:.2f} times as long as on an equally fast machine",
            soft_wrap=True,
        )
    if not lost:
        ours = sum(each.name not in FOREIGN for each in found)
        console.print(f"none of {ours} timings is slower by more than {most:.0%} than in {folder}")
    return not lost


def again(parts: Sequence[Part], rows: set[tuple[str, str]], measured: dict[str, Any]) -> None:
    """Measure rows again and replace their results. Noise rarely hits the same row twice."""
    for part in parts:
        for row in part.rows:
            if (part.name, row.key) in rows:
                kept = measured[part.name]["rows"]
                kept[row.key] = row.measure(kept)
