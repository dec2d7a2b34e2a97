"""`talkconv bench op` times the operation, other methods and plain copies, and checks the bars.

The setting is that of the paper's throughput: batch 10, d = 1024, 16 heads, and windows of up to 31
tokens on each side.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import talkconv
from talkconv.bench.bars import Bar, bars_table, plain_bars
from talkconv.bench.correctness import check_methods, refuse_on_red
from talkconv.bench.inputs import DIRECTIONS, FORWARD, TRAINING, Contestant, Inputs, Setting
from talkconv.bench.measure import FULL, Run, Timing, measure, plain, seconds_of
from talkconv.bench.methods import FLEX, FUSED, METHODS, OURS
from talkconv.bench.own_process import run_alone
from talkconv.bench.peak_memory import Peak, trim_heap
from talkconv.bench.throughput import peak_alone
from talkconv.machine import headline, write_results
from talkconv.messages import one_message
from talkconv.ops import memory

LENGTHS = [10, 100, 1000, 10_000]
BATCH, DIM, HEADS, REACH = 10, 1024, 16, 31
CLONE = "x.clone()"
NEW_MEMORY = "TaLK, new memory"
# A method is left out where one of its tensors would have more bytes: it would take minutes.
MOST_BYTES = 6 << 30
# How many times faster than fused attention the operation must be, by n.
SPEEDUP = {
    FORWARD: {10: 5, 100: 10, 1000: 25, 10_000: 250},
    TRAINING: {10: 3, 100: 9, 1000: 20},
}
# The most time that a forward may take as a share of x.clone(), from this length on.
COPY_SHARE, COPY_FROM = 0.7, 1000
# The most time that windows of 255 tokens a side may take, as a multiple of windows of 3.
WINDOWS_RATIO, WINDOWS_AT = 1.5, 1000
WINDOWS = (3, 7, 31, 127, 255)


def contestants(n: int) -> dict[str, Contestant]:
    """Return every method that can encode n tokens in reasonable time, by name."""
    setting = Setting(n)
    inputs = Inputs(setting)
    return {
        name: method.make(inputs)
        for name, method in METHODS.items()
        # FlexAttention compiles for half a minute; `bench all` measures it.
        if name != FLEX and method.largest(setting) * setting.dtype.itemsize < MOST_BYTES
    }


def copies(n: int) -> dict[str, Run]:
    """Return runs that only move the memory of an input."""
    x = torch.randn(BATCH, n, DIM)
    ready = torch.empty_like(x)
    return {CLONE: x.clone, "copy into ready memory": lambda: ready.copy_(x)}


def timer_of(runs: Mapping[str, Run]) -> Callable[[Run], float]:
    """Return a timer for the runs of a row, by which a clone always pays for new pages.

    Otherwise it would sometimes find a free block that another method has left, and its time would
    vary by a factor of four between two measurements.
    """
    clone = runs[CLONE]

    def seconds(run: Run) -> float:
        if run is clone:
            trim_heap()
        return seconds_of(run)

    return seconds


def with_new_memory(run: Run) -> Run:
    """Return a run that finds no memory of an earlier output, like the first call of a process."""

    def without_kept_memory() -> object:
        memory.release()
        return run()

    return without_kept_memory


def beside_copies(n: int, runs: Mapping[str, Run]) -> dict[str, Run]:
    """Return the runs of a row with copies, and with our run on new memory if that differs."""
    new = {NEW_MEMORY: with_new_memory(runs[OURS])}
    is_kept = BATCH * n * DIM * torch.float32.itemsize >= memory.LARGE
    return {**runs, **(new if is_kept else {}), **copies(n)}


def rounds(lengths: list[int]) -> Iterator[tuple[int, str, dict[str, Run]]]:
    """Yield the runs that are timed together: (n, direction, runs by name).

    The longest come first, because they must not reuse memory that short runs have freed.
    """
    for n in sorted(lengths, reverse=True):
        found = contestants(n)
        for direction in DIRECTIONS:
            # A backward of the slow methods at 10 000 tokens takes minutes.
            chosen = found if direction == FORWARD or n <= 1000 else {OURS: found[OURS]}
            runs = {name: each.run(direction) for name, each in chosen.items()}
            yield n, direction, beside_copies(n, runs)


def bench_op(
    lengths: Annotated[
        list[int] | None,
        typer.Option("--n", help="A sequence length to measure, repeatable.", show_default=False),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time for each method and length.")] = 2.0,
    out: Annotated[
        Path | None, typer.Option(help="A JSON file to write; without it nothing is written.")
    ] = None,
) -> None:
    """Time the operation, other methods and copies, and print which bars are met."""
    console = Console()
    lengths = lengths or LENGTHS
    with one_message("not measured"):
        refuse_on_red(check_methods((METHODS[OURS], METHODS[FUSED]), torch.float32))
    console.print(headline(str(Setting(max(lengths)))))
    results: dict[str, Any] = {"timings": [], "memory beyond": [], "windows": {}}
    bars: list[Bar] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=2 * len(lengths))
        for n, direction, runs in rounds(lengths):
            progress.update(task, description=f"n = {n:,}, {direction}")
            timings = measure(
                runs,
                seconds=seconds,
                enough=max(FULL.enough, seconds),
                timer=timer_of(runs) if n >= COPY_FROM else None,
            )
            bars += timing_bars(n, direction, timings)
            results["timings"].append({"n": n, "direction": direction, "timings": plain(timings)})
            console.print(table_of(n, direction, timings))
            progress.advance(task)
    results["memory beyond"] = [{"n": n, "bytes": memory_beyond(n)} for n in lengths]
    console.print(memory_table(results["memory beyond"]))
    if WINDOWS_AT in lengths:
        windows = measure(window_runs(), seconds=seconds)
        results["windows"] = plain(windows)
        bars.append(windows_bar(windows))
        console.print(windows_table(windows))
    results["bars"] = plain_bars(bars)
    console.print(bars_table(bars))
    if out is not None:
        write_results(out, results)
        console.print(f"written to {out}")


def timing_bars(n: int, direction: str, timings: Mapping[str, Timing]) -> list[Bar]:
    """Return the bars of one row."""
    ours = timings[OURS].median
    bars = []
    if FUSED in timings and n in SPEEDUP[direction]:
        what = f"n = {n:,}, {direction}: times faster than fused attention"
        bars.append(Bar(what, timings[FUSED].median / ours, SPEEDUP[direction][n], at_least=True))
    if direction == FORWARD and n >= COPY_FROM:
        what = f"n = {n:,}, {direction}: time over {CLONE}"
        bars.append(Bar(what, ours / timings[CLONE].median, COPY_SHARE, at_least=False))
    return bars


def memory_beyond(n: int) -> dict[str, int | None]:
    """Return the peak bytes of the operation beyond inputs and outputs, by direction."""
    setting = Setting(n)
    output = setting.batch * n * setting.dim * setting.dtype.itemsize
    grads = output + 2 * setting.batch * n * setting.heads * setting.dtype.itemsize
    found: dict[str, int | None] = {}
    for direction, owed in ((FORWARD, output), (TRAINING, output + grads)):
        peak: Peak = run_alone(peak_alone, OURS, setting, direction)
        found[direction] = None if peak.bytes is None else max(0, peak.bytes - owed)
    return found


def window_runs(n: int = WINDOWS_AT) -> dict[str, Run]:
    """Return forward runs by l_max = r_max; their times should not depend on it."""
    tensors = METHODS[OURS].make(Inputs(Setting(n))).tensors
    return {
        str(reach): functools.partial(talkconv.talk_conv, *tensors, l_max=reach, r_max=reach)
        for reach in WINDOWS
    }


def windows_bar(timings: Mapping[str, Timing]) -> Bar:
    """Return the bar on the widest windows."""
    narrow, wide = str(WINDOWS[0]), str(WINDOWS[-1])
    found = timings[wide].median / timings[narrow].median
    what = f"n = {WINDOWS_AT:,}: windows of {wide} over windows of {narrow}"
    return Bar(what, found, WINDOWS_RATIO, at_least=False)


def table_of(n: int, direction: str, timings: dict[str, Timing]) -> Table:
    """Return the times of one row as a table for the terminal, the fastest first."""
    table = Table(title=f"n = {n:,}, {direction}", title_justify="left")
    table.add_column("")
    table.add_column("ms, median (quartiles)", justify="right")
    table.add_column("times TaLK", justify="right")
    table.add_column(f"over {CLONE}", justify="right")
    ours, clone = timings[OURS].median, timings[CLONE].median
    for name, timing in sorted(timings.items(), key=lambda item: item[1].median):
        style = "bold" if name == OURS else ""
        ratios = f"{timing.median / ours:.2f}", f"{timing.median / clone:.2f}"
        table.add_row(name, str(timing), *ratios, style=style)
    return table


def memory_table(beyond: list[dict[str, Any]]) -> Table:
    """Return the memory beyond inputs and outputs as a table for the terminal."""
    table = Table(title="Memory beyond inputs and outputs, MiB at the peak", title_justify="left")
    for heading in ("n", *DIRECTIONS):
        table.add_column(heading, justify="right")
    for row in beyond:
        cells = ("–" if b is None else f"{b / 2**20:.2f}" for b in row["bytes"].values())
        table.add_row(f"{row['n']:,}", *cells)
    return table


def windows_table(timings: Mapping[str, Timing]) -> Table:
    """Return the times by window as a table for the terminal."""
    table = Table(title=f"Windows, forward, n = {WINDOWS_AT:,}", title_justify="left")
    for heading in ("l_max = r_max", "ms, median (quartiles)"):
        table.add_column(heading, justify="right")
    for reach, timing in timings.items():
        table.add_row(reach, str(timing))
    return table
