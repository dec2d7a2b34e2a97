"""`talkconv bench exactness` prints the largest errors against the definition in float64."""

from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

import talkconv
from talkconv.bench.bars import Bar, bars_table
from talkconv.bench.inputs import offsets_between_tokens
from talkconv.machine import write_results

LENGTHS = [64, 1024, 16_384, 1_000_000]
# The largest error that an output in float32 may have, at any length.
MOST_ERROR = 2e-6
REACH = 15
# Rows that are compared at a time.
SLICE = 512
# A gradient at j depends on grad_out up to REACH tokens away.
HALO = REACH + 1


def bench_exactness(
    lengths: Annotated[
        list[int] | None,
        typer.Option("--n", help="A sequence length, repeatable.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A JSON file to write; without it nothing is written.")
    ] = None,
) -> None:
    """Print the largest error against the definition in float64; x has mean 1 and deviation 1."""
    console = Console()
    lengths = lengths or LENGTHS
    results = []
    bars = []
    table = Table(title=f"Largest error, l_max = r_max = {REACH}", title_justify="left")
    for heading in ("n", "dtype", "output", "grad_x", "grad_left", "grad_right", "in roundings"):
        table.add_column(heading, justify="right")
    for n in lengths:
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            errors, roundings = largest_errors(n, dtype, console)
            results.append({"n": n, "dtype": str(dtype), "errors": errors, "roundings": roundings})
            if dtype == torch.float32:
                what = f"n = {n:,}: largest error of the output in float32"
                bars.append(Bar(what, errors["output"], MOST_ERROR, at_least=False))
            cells = (f"{error:.1e}" for error in errors.values())
            # Near 0 the roundings of float32 are tiny, so their number would say nothing.
            shown = "" if dtype == torch.float32 else f"{roundings:.2f}"
            table.add_row(f"{n:,}", str(dtype)[6:], *cells, shown)
    console.print(table)
    console.print(
        "in roundings: the output's error over half a unit in the last place of its dtype"
    )
    console.print(bars_table(bars))
    if out is not None:
        write_results(out, results)
        console.print(f"written to {out}")


def largest_errors(
    n: int, dtype: torch.dtype, console: Console | None = None
) -> tuple[dict[str, float], float]:
    """Return the largest errors of output and gradients, and the output's error in roundings."""
    generator = torch.Generator().manual_seed(n)
    x = (1 + torch.randn(1, n, 4, generator=generator)).to(dtype)
    grad_out = torch.randn(1, n, 4, generator=generator).to(dtype)
    left, right = offsets_between_tokens((2, 1, n, 1), REACH, generator)
    leaves = tuple(t.requires_grad_() for t in (x, left, right))
    out = talkconv.talk_conv(*leaves, l_max=REACH, r_max=REACH)
    actual = (out.detach(), *torch.autograd.grad(out, leaves, grad_out))
    errors = dict.fromkeys(("output", "grad_x", "grad_left", "grad_right"), 0.0)
    roundings = 0.0
    starts = range(0, n, SLICE)
    is_silent = console is None or len(starts) < 100
    for start in track(
        starts, f"n = {n:,}, {dtype}", console=console, transient=True, disable=is_silent
    ):
        rows = slice(start, min(start + SLICE, n))
        expected = exact_rows(leaves, grad_out, rows)
        for name, found, right_one in zip(errors, actual, expected, strict=True):
            wrong = (found[:, rows].double() - right_one).abs()
            errors[name] = max(errors[name], wrong.max().item())
        rounding = torch.finfo(dtype).eps / 2 * expected[0].abs().clamp(min=2**-10)
        wrong = (actual[0][:, rows].double() - expected[0]).abs()
        roundings = max(roundings, (wrong / rounding).max().item())
    return errors, roundings


def exact_rows(leaves: tuple[Tensor, ...], grad_out: Tensor, rows: slice) -> tuple[Tensor, ...]:
    """Return output and gradients of some rows by the dense definition in float64."""
    begin, end = max(0, rows.start - 2 * HALO), rows.stop + 2 * HALO
    around = tuple(t.detach()[:, begin:end].double().requires_grad_() for t in leaves)
    out = talkconv.reference.talk_conv(*around, l_max=REACH, r_max=REACH)
    grads = torch.autograd.grad(out, around, grad_out[:, begin:end].double())
    inner = slice(rows.start - begin, rows.stop - begin)
    return tuple(t.detach()[:, inner] for t in (out, *grads))
