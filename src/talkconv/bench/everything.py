"""`talkconv bench all` measures every table, and writes one page with pictures."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from talkconv.bench.accuracy import accuracy_part
from talkconv.bench.complexity import complexity_part
from talkconv.bench.correctness import refuse_on_red
from talkconv.bench.generation_part import generation_part
from talkconv.bench.network_part import networks_part
from talkconv.bench.own_process import preload
from talkconv.bench.page.write import write_page
from talkconv.bench.part import PART_NAMES, Part
from talkconv.bench.store import Store
from talkconv.bench.throughput import throughput_part
from talkconv.machine import headline, machine_name
from talkconv.messages import did_you_mean, one_message

PARTS = {
    "throughput": throughput_part,
    "complexity": complexity_part,
    "networks": networks_part,
    "generation": generation_part,
    "accuracy": accuracy_part,
}
assert tuple(PARTS) == PART_NAMES


def default_folder(quick: bool) -> Path:
    """Return the folder of results, named after the machine. Quick runs have their own."""
    return Path("results") / (machine_name() + ("-quick" if quick else ""))


def bench_all(
    out: Annotated[
        Path | None, typer.Option(help="The folder to write.", show_default="results/MACHINE")
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(help=f"Measure one part only, repeatable: {', '.join(PARTS)}."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few rows in two minutes, in results/MACHINE-quick.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again what this commit has measured already.")
    ] = False,
) -> None:
    """Measure every table within an hour, and write a page with pictures.

    An interrupted run goes on where it was. Every contestant is compared with its definition first.
    """
    console = Console()
    folder = out or default_folder(quick)
    again = "the same command goes on where it was"
    with one_message("not measured", interrupted=again):
        parts = chosen_parts(part or [], quick)
        measure_parts(folder, parts, console, quick=quick, fresh=fresh)
    console.print(f"written to {folder}", highlight=False, soft_wrap=True)


def chosen_parts(names: Sequence[str], quick: bool) -> list[Part]:
    """Return the parts of these names, or all of them if there are no names."""
    for name in names:
        if name not in PARTS:
            raise ValueError(f"no part is called {name!r}: {did_you_mean(name, PARTS)}")
    return [make(quick) for name, make in PARTS.items() if name in names or not names]


def measure_parts(
    folder: Path, parts: Sequence[Part], console: Console, *, quick: bool, fresh: bool
) -> None:
    """Measure the rows that are not measured yet, and write the page again after each part."""
    # After this, new processes start in milliseconds, also for networks.
    preload("talkconv.models")
    stores = {part.name: Store(folder, part.name, quick=quick, fresh=fresh) for part in parts}
    waiting = [
        (part, row) for part in parts for row in part.rows if row.key not in stores[part.name].rows
    ]
    console.print(headline(f"{len(waiting)} rows to measure"), highlight=False)
    with _bar(console) as progress:
        task = progress.add_task("checking", total=sum(row.seconds for _, row in waiting))
        for part in parts:
            todo = [row for owner, row in waiting if owner is part]
            if todo:
                progress.update(task, description=f"{part.name}: checking")
                refuse_on_red(part.check())
            for row in todo:
                progress.update(task, description=f"{part.name}: {row.key}")
                begin = time.monotonic()
                stores[part.name].add(row.key, row.measure(stores[part.name].rows), part)
                took = time.monotonic() - begin
                console.print(f"{part.name}: {row.key}, {took:.0f} s", highlight=False)
                progress.advance(task, row.seconds)
            write_page(folder, draw=[part.name])


def _bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    # Estimate the time left from all rows so far, not only from the last ones.
    return Progress(*columns, console=console, transient=True, speed_estimate_period=3600)
