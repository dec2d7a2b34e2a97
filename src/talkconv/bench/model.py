"""`talkconv bench model` measures speed and memory of training a network with each mixer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from talkconv.bench import changing_shapes
from talkconv.bench.bars import bars_table, plain_bars
from talkconv.bench.correctness import refuse_on_red
from talkconv.bench.measure import FULL, Pace, Timing
from talkconv.bench.mixer_correctness import check_mixers
from talkconv.bench.network_speed import TOKENS, measure_training
from talkconv.bench.networks import LABELS, OURS, SIZES_IN_WORDS
from talkconv.bench.own_process import preload
from talkconv.bench.side_by_side import RowResult
from talkconv.machine import headline, write_results
from talkconv.messages import one_message
from talkconv.network_settings import MIXERS

LENGTHS = [32, 128, 512, 2048, 8192]


def bench_model(
    lengths: Annotated[
        list[int] | None,
        typer.Option("--n", help="A sequence length to measure, repeatable.", show_default=False),
    ] = None,
    tokens: Annotated[int, typer.Option(help="Tokens in a batch, at any length.")] = TOKENS,
    rounds: Annotated[int, typer.Option(help="Steps for each mixer and length.")] = 5,
    shapes: Annotated[
        int,
        typer.Option(
            "--steps", help="Batches of changing shapes whose peak memory is measured; 0: none."
        ),
    ] = changing_shapes.STEPS,
    out: Annotated[
        Path | None, typer.Option(help="A JSON file to write; without it nothing is written.")
    ] = None,
) -> None:
    """Time training steps with each mixer, and measure the memory of training."""
    lengths = lengths or LENGTHS
    if any(length < 1 or tokens % length for length in lengths):
        raise typer.BadParameter(f"every length must divide {tokens} tokens, got {lengths}")
    console = Console()
    preload("talkconv.models")
    with one_message("not measured"):
        refuse_on_red(check_mixers())
    console.print(headline(f"{tokens} tokens a batch, {SIZES_IN_WORDS}, float32"))
    pace = Pace(seconds=0, least_rounds=rounds, enough=float("inf"), patience=FULL.patience)
    rows: dict[int, RowResult] = {}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=len(lengths) + bool(shapes))
        for length in lengths:
            progress.update(task, description=f"n = {length:,}")
            rows[length] = measure_training(length, pace, tokens=tokens)
            progress.advance(task)
        progress.update(task, description=f"{shapes} batches of changing shapes")
        peaks = changing_shapes.peaks(shapes) if shapes else {}
    console.print(speed_table(rows, tokens))
    console.print(verdict({length: _timings(row) for length, row in rows.items()}))
    bar = changing_shapes.bar_of(peaks) if peaks else None
    if peaks:
        console.print(shapes_table(peaks, shapes))
    if bar is not None:
        console.print(bars_table([bar]))
    if out is not None:
        found = {"training": _listed(rows, tokens), "changing shapes": peaks}
        write_results(out, {**found, "bars": plain_bars([] if bar is None else [bar])})
        console.print(f"written to {out}")


def _listed(rows: Mapping[int, RowResult], tokens: int) -> list[dict[str, Any]]:
    return [{"n": length, "tokens": tokens, **row} for length, row in rows.items()]


def _timings(row: RowResult) -> dict[str, Timing]:
    return {name: Timing(**timing) for name, timing in row["timings"].items()}


def speed_table(rows: Mapping[int, RowResult], tokens: int) -> Table:
    """Return tokens a second and peak memory as a table for the terminal."""
    title = "Training: tokens a second (quartiles), peak MiB"
    table = Table(title=title, title_justify="left")
    table.add_column("n", justify="right")
    for mixer in MIXERS:
        table.add_column(LABELS[mixer], justify="right")
    for length, row in rows.items():
        timings = _timings(row)
        cells = []
        for mixer in MIXERS:
            timing, peak = timings[mixer], row["bytes"][mixer]
            spread = f"{tokens / timing.high:,.0f}–{tokens / timing.low:,.0f}"
            memory = "" if peak is None else f", {peak / 2**20:,.0f}"
            cells.append(f"{tokens / timing.median:,.0f} ({spread}){memory}")
        table.add_row(f"{length:,}", *cells)
    return table


def shapes_table(peaks: Mapping[str, int | None], steps: int) -> Table:
    """Return the peaks of training with changing shapes as a table for the terminal."""
    title = f"Training on {steps} batches of changing shapes, Multi30k network"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("MiB at the peak of the process", justify="right")
    for mixer, peak in peaks.items():
        table.add_row(LABELS[mixer], "–" if peak is None else f"{peak / 2**20:,.0f}")
    return table


def verdict(results: Mapping[int, Mapping[str, Timing]]) -> str:
    """Say whether TaLK is the fastest everywhere, and as fast at the longest as at 128 tokens."""
    lines = []
    for length, timings in results.items():
        others = {mixer: timing.median for mixer, timing in timings.items() if mixer != OURS}
        nearest = min(others, key=others.__getitem__)
        ratio = others[nearest] / timings[OURS].median
        overlap = " (quartiles overlap)" if timings[nearest].overlaps(timings[OURS]) else ""
        lines.append(
            f"n = {length:,}: {ratio:.2f} times as fast as the next ({LABELS[nearest]}){overlap}"
        )
    longest = max(results)
    if 128 in results and longest > 128:
        kept = results[128][OURS].median / results[longest][OURS].median
        lines.append(f"tokens per second at {longest:,}: {kept:.2f} of those at 128")
    return "\n".join(lines)
