"""`talkconv bench compare A B` prints what became faster or slower by more than the noise."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from talkconv.bench import engines, methods
from talkconv.bench.measure import Timing
from talkconv.bench.store import read_folder
from talkconv.messages import one_message

# Smaller changes are not reported, even if their quartiles do not overlap.
LEAST_CHANGE = 0.05
LEAST_MEMORY_CHANGE = 0.1
# Contestants that run no code of this package. They show how fast the machine was.
FOREIGN = frozenset(
    {
        *(name for name, method in methods.METHODS.items() if not method.ours),
        engines.MARIAN,
        *engines.CTRANSLATE2,
    }
)


@dataclass(frozen=True)
class Change:
    """One contestant of one row, before and after."""

    part: str
    row: str
    name: str
    before: Timing
    after: Timing

    @property
    def ratio(self) -> float:
        """Return the time after as a multiple of the time before."""
        return self.after.median / self.before.median

    def is_clear(self, speed: float = 1.0) -> bool:
        """Return whether the quartiles are apart on a machine that takes `speed` times as long."""
        scaled = Timing(
            self.before.median * speed,
            self.before.low * speed,
            self.before.high * speed,
            self.before.runs,
        )
        return not self.after.overlaps(scaled)


def changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    """Yield every timing that is in both. Each argument has parts by name."""
    for part in before.keys() & after.keys():
        old, new = before[part]["rows"], after[part]["rows"]
        for row in (key for key in old if key in new):
            timings, later = old[row].get("timings", {}), new[row].get("timings", {})
            for name in (key for key in timings if key in later):
                yield Change(part, row, name, Timing(**timings[name]), Timing(**later[name]))


def machine_speed(found: Sequence[Change]) -> float:
    """Return how many times as long foreign contestants take now."""
    foreign = [each.ratio for each in found if each.name in FOREIGN]
    return statistics.median(foreign) if foreign else 1.0


def memory_changes(
    before: dict[str, Any], after: dict[str, Any]
) -> Iterator[tuple[str, str, int, int]]:
    """Yield (row, name, bytes before, bytes after) of changes by at least a tenth and a MiB."""
    for part in before.keys() & after.keys():
        old, new = before[part]["rows"], after[part]["rows"]
        for row in (key for key in old if key in new):
            sizes, later = old[row].get("bytes", {}), new[row].get("bytes", {})
            for name, size in sizes.items():
                now = later.get(name)
                if size and now and abs(now - size) > max(1 << 20, LEAST_MEMORY_CHANGE * size):
                    yield row, name, size, now


def bench_compare(
    before: Annotated[Path, typer.Argument(help="A folder that `talkconv bench all` wrote.")],
    after: Annotated[Path, typer.Argument(help="Another one.")],
) -> None:
    """Say what became faster or slower beyond the noise."""
    with one_message("not compared"):
        print_changes(before, after, Console())


def print_changes(first: Path, second: Path, console: Console) -> None:
    """Print what became faster or slower from one folder of results to another."""
    before, after = read_folder(first), read_folder(second)
    found = sorted(changes(before, after), key=lambda each: each.ratio)
    if not found:
        raise ValueError(f"{first} and {second} must have rows in common, got none")
    for key in ("processor", "threads", "kernel", "torch"):
        values = {next(iter(parts.values()))["machine"][key] for parts in (before, after)}
        if len(values) > 1:
            console.print(f"[bold]the {key} differs:[/] {' and '.join(map(str, values))}")
    told = [each for each in found if each.is_clear() and abs(each.ratio - 1) > LEAST_CHANGE]
    table = Table(title="Beyond the noise", title_justify="left")
    for heading in ("", "ms before", "ms after", "times as long"):
        table.add_column(heading, justify="right" if heading else "left")
    for each in told:
        style = "bold red" if each.ratio > 1 and each.name not in FOREIGN else ""
        name = f"{each.row}: {each.name}"
        table.add_row(name, str(each.before), str(each.after), f"{each.ratio:.2f}", style=style)
    console.print(table)
    console.print(
        f"{len(told)} of {len(found)} timings changed by more than {LEAST_CHANGE:.0%} with "
        f"quartiles apart; what runs no code of talkconv took {machine_speed(found):.2f} times as "
        "long."
    )
    for row, name, size, now in memory_changes(before, after):
        console.print(f"memory, {row}: {name}: {size / 2**20:,.1f} to {now / 2**20:,.1f} MiB")
