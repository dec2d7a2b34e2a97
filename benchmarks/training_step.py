"""Compares the training steps of two versions of talkconv, side by side, for every mixer.

    git worktree add ../before COMMIT && make -C ../before setup
    .venv/bin/python benchmarks/training_step.py ../before/.venv/bin/python --out steps.json

Each version trains the network of a recipe in a process of its own with one thread, on the same
batches of changing shapes. The two processes take turns, so that noise affects both alike.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from talkconv.bench.measure import Timing
from talkconv.bench.networks import LABELS
from talkconv.machine import headline, write_results
from talkconv.network_settings import MIXERS

WORKER = Path(__file__).parent / "steps_of_one_version.py"
RECIPE = "multi30k_de_en"
# The first steps are not timed: they take their memory from the system.
WARM_UP = 15


class Version:
    """A process that trains with the talkconv of one Python."""

    def __init__(self, python: Path, mixer: str) -> None:
        self._process = subprocess.Popen(
            [python, WORKER, RECIPE, mixer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        self.seconds_per_token: list[float] = []
        self.peak = 0

    def take(self, steps: int, *, timed: bool = True) -> None:
        """Let the process take some steps, and keep what it measured."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(steps, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process ended with exit code {self._process.wait()}")
        found = json.loads(answer)
        self.peak = found["peak"]
        if timed:
            self.seconds_per_token.append(found["seconds"] / found["tokens"])

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def compare(mixer: str, pythons: dict[str, Path], rounds: int, steps: int) -> dict[str, Any]:
    """Return tokens a second, with quartiles, and peak bytes of a mixer in each version."""
    versions = {name: Version(python, mixer) for name, python in pythons.items()}
    for version in versions.values():
        version.take(WARM_UP, timed=False)
    for _ in range(rounds):
        for version in versions.values():
            version.take(steps)
    for version in versions.values():
        version.close()
    return {
        name: {
            "tokens per second": _speeds(Timing.of(version.seconds_per_token)),
            "peak bytes": version.peak,
        }
        for name, version in versions.items()
    }


def _speeds(timing: Timing) -> list[float]:
    """Return the median and the quartiles of the speed."""
    return [round(1 / seconds, 1) for seconds in (timing.median, timing.high, timing.low)]


def main(
    before: Annotated[Path, typer.Argument(help="The Python of the other version.")],
    rounds: Annotated[int, typer.Option(help="Turns of each version.")] = 7,
    steps: Annotated[int, typer.Option(help="Steps in a turn.")] = 8,
    out: Annotated[Path | None, typer.Option(help="A JSON file to write.")] = None,
) -> None:
    """Compare the training steps of the talkconv of another Python with those of this one."""
    console = Console()
    console.print(headline(f"{RECIPE}, one thread, {rounds} turns of {steps} steps"))
    pythons = {"before": before.absolute(), "after": Path(sys.executable)}
    found = {
        mixer: compare(mixer, pythons, rounds, steps)
        for mixer in track(MIXERS, "measuring", console=console, transient=True)
    }
    console.print(table_of(found))
    if out is not None:
        commits = {name: commit_of(python) for name, python in pythons.items()}
        settings = {"recipe": RECIPE, "rounds": rounds, "steps": steps, "commits": commits}
        write_results(out, {**settings, "mixers": found})
        console.print(f"written to {out}")


def commit_of(python: Path) -> str:
    """Return the commit of the checkout that a Python has installed as talkconv."""
    ask = "import talkconv; print(talkconv.__path__[0])"
    folder = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    git = ["git", "-C", folder.stdout.strip(), "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def table_of(found: dict[str, dict[str, Any]]) -> Table:
    """Return the comparison as a table for the terminal."""
    table = Table(title="Training: tokens a second (quartiles), peak MiB", title_justify="left")
    for heading in ("", "before", "after", "times as fast"):
        table.add_column(heading, justify="right")
    for mixer, versions in found.items():
        cells = []
        for version in versions.values():
            median, low, high = version["tokens per second"]
            peak = version["peak bytes"] / 2**20
            cells.append(f"{median:,.0f} ({low:,.0f}–{high:,.0f}), {peak:,.0f}")
        before, after = (each["tokens per second"][0] for each in versions.values())
        table.add_row(LABELS[mixer], *cells, f"{after / before:.2f}")
    return table


if __name__ == "__main__":
    typer.run(main)
