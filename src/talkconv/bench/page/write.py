"""Writes the page of a folder of results from the JSON files in it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from talkconv.bench.bars import Bar
from talkconv.bench.page import accuracy, complexity, generation, networks, throughput
from talkconv.bench.page.markdown import bars_table
from talkconv.bench.page.pictures import Picture, save
from talkconv.bench.part import PART_NAMES, Rows
from talkconv.bench.store import read_folder
from talkconv.files import write_text
from talkconv.messages import one_message

PAGE = "README.md"


@dataclass(frozen=True)
class Section:
    """The functions that make a section of the page from the rows of a part."""

    title: str
    text: Callable[[Rows], str]
    bars: Callable[[Rows], list[Bar]]
    pictures: Callable[[Rows], list[Picture]]


SECTIONS = {
    "throughput": Section(
        "Throughput and memory", throughput.section, throughput.bars, throughput.pictures
    ),
    "complexity": Section("Complexity", complexity.section, complexity.bars, complexity.pictures),
    "networks": Section("Networks", networks.section, networks.bars, networks.pictures),
    "generation": Section("Generation", generation.section, generation.bars, generation.pictures),
    "accuracy": Section("Accuracy over length", accuracy.section, accuracy.bars, accuracy.pictures),
}

assert tuple(SECTIONS) == PART_NAMES


def bench_page(
    folder: Annotated[Path, typer.Argument(help="A folder that `talkconv bench all` wrote.")],
) -> None:
    """Write the page and the pictures of a folder again, from the JSON in it."""
    with one_message("not written"):
        write_page(folder)
    typer.echo(f"written: {folder / PAGE}")


def write_page(folder: Path, draw: Collection[str] = PART_NAMES) -> None:
    """Write README.md, and the pictures of the parts in `draw` as far as they were measured."""
    found = read_folder(folder)
    parts = [_head(found)]
    for name, part in found.items():
        section, rows = SECTIONS[name], part["rows"]
        pictures = [each for each in section.pictures(rows) if not each.is_empty]
        for picture in pictures if name in draw else ():
            save(picture, folder)
        parts += [
            f"## {section.title}",
            _measured(part, f"{name}.json"),
            *(picture.markdown() for picture in pictures),
            section.text(rows),
        ]
    write_text(folder / PAGE, "\n\n".join(parts) + "\n")


def _head(found: dict[str, dict[str, Any]]) -> str:
    machine = next(iter(found.values()))["machine"]
    bars = [bar for name, part in found.items() for bar in SECTIONS[name].bars(part["rows"])]
    gpu = f", {machine['gpu']}" if machine["gpu"] else ""
    lines = [
        f"# Measured on {machine['processor']}",
        f"{machine['cores']} cores, {machine['threads']} used{gpu}, {machine['system']}; kernel "
        f"{machine['kernel']}, torch {machine['torch']}, Python {machine['python']}, talkconv "
        f"{machine['talkconv']}. Every contestant was compared with its definition first. All "
        "contestants of a row took turns; numbers are medians with quartiles.",
    ]
    if any(part["quick"] for part in found.values()):
        lines.append("**A quick run of two minutes: its spreads are wide.**")
    if bars:
        lines += ["## Bars", bars_table(bars)]
    return "\n\n".join(lines)


def _measured(part: dict[str, Any], file: str) -> str:
    machine = part["machine"]
    state = "" if part.get("complete") else " It was interrupted, and some rows are missing."
    return (
        f"`{machine['command']}`, {machine['date']}, commit {machine['commit']}; all numbers in "
        f"[{file}]({file}).{state}"
    )
