"""`talkconv bench model`: a training step of one network with each mixer, at many lengths.

A language model of bytes, d = 512 and 6 layers. Every batch has the same number of tokens, cut into
sequences of another length each time: a mixer of linear cost is as fast at any of them. Bytes, as
long sequences are modelled, and because a softmax over many words would be most of the step and
drown what the mixers differ by.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from talkconv.bench.measure import Timing, measure, plain
from talkconv.machine import headline, write_results
from talkconv.network_settings import MIXERS

TOKENS = 8192
LENGTHS = [32, 128, 512, 2048, 8192]
OURS = "talk"
SIZES: dict[str, Any] = dict(
    vocab_size=260,  # 256 bytes and the special tokens
    dim=512,
    ff_dim=1024,
    heads=8,
    encoder_l_max=[],
    decoder_l_max=[3, 7, 15, 31, 31, 31],
    # no dropout within the mixers: it would keep attention from its fused kernel
    dropout=0.1,
)


def training_step(mixer: str, tokens: int, length: int) -> Callable[[], object]:
    """Forward, backward and an Adam update on `tokens` random bytes in sequences of `length`."""
    # transformers takes seconds to import, which other commands need not wait for
    from talkconv.models import TaLKConvConfig, TaLKConvForCausalLM

    torch.manual_seed(0)
    model = TaLKConvForCausalLM(TaLKConvConfig(**SIZES, decoder_mixer=mixer)).train()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    text = torch.randint(4, SIZES["vocab_size"], (tokens // length, length))

    def step() -> float:
        optimizer.zero_grad()
        loss = model(text, labels=text).loss
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def bench_model(
    lengths: Annotated[
        list[int] | None, typer.Option("--n", help="Sequence lengths to measure.")
    ] = None,
    tokens: Annotated[int, typer.Option(help="Tokens in a batch, whatever the length.")] = TOKENS,
    rounds: Annotated[int, typer.Option(help="Steps for each mixer and length.")] = 12,
    out: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("results/model.json"),
) -> None:
    """Time a training step with each mixer; interleaved, with spread."""
    lengths = lengths or LENGTHS
    if any(length < 1 or tokens % length for length in lengths):
        raise typer.BadParameter(f"every length must divide {tokens} tokens, got {lengths}")
    console = Console()
    console.print(headline(f"{tokens} tokens a batch, d 512, 6 layers, float32"))
    console.print("A step takes seconds: all of it about 20 minutes on two cores.")
    results: dict[int, dict[str, Timing]] = {}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=len(lengths))
        for length in lengths:
            progress.update(task, description=f"n = {length:,}")
            steps = {mixer: training_step(mixer, tokens, length) for mixer in MIXERS}
            results[length] = measure(steps, seconds=0, least_rounds=rounds)
            # row by row: whoever has waited minutes keeps what was measured until then
            console.print(verdict({length: results[length]}))
            write_results(out, rows_of(results, tokens))
            progress.advance(task)
    console.print(table_of(results, tokens))
    console.print(verdict(results))
    console.print(f"written to {out}")


def rows_of(results: dict[int, dict[str, Timing]], tokens: int) -> list[dict[str, Any]]:
    """As JSON takes it."""
    return [
        {"n": length, "tokens": tokens, "timings": plain(timings)}
        for length, timings in results.items()
    ]


def table_of(results: dict[int, dict[str, Timing]], tokens: int) -> Table:
    table = Table(title="Training, tokens per second (quartiles)", title_justify="left")
    table.add_column("n", justify="right")
    for mixer in MIXERS:
        table.add_column(mixer, justify="right")
    for length, timings in results.items():
        cells = []
        for mixer in MIXERS:
            timing = timings[mixer]
            spread = f"{tokens / timing.high:,.0f}–{tokens / timing.low:,.0f}"
            cells.append(f"{tokens / timing.median:,.0f} ({spread})")
        table.add_row(f"{length:,}", *cells)
    return table


def verdict(results: dict[int, dict[str, Timing]]) -> str:
    """Is TaLK the fastest everywhere, and as fast at the longest as at 128 tokens?"""
    lines = []
    for length, timings in results.items():
        others = {mixer: timing.median for mixer, timing in timings.items() if mixer != OURS}
        nearest = min(others, key=others.__getitem__)
        ratio = others[nearest] / timings[OURS].median
        lines.append(f"n = {length:,}: {ratio:.2f} times as fast as the next ({nearest})")
    longest = max(results)
    if 128 in results and longest > 128:
        kept = results[128][OURS].median / results[longest][OURS].median
        lines.append(f"tokens per second at {longest:,}: {kept:.2f} of those at 128")
    return "\n".join(lines)
