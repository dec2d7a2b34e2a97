"""`talkconv bench op`: the operation against attention, DynamicConv and plain copies.

The paper's throughput setting: batch 10, d = 1024, 16 heads; windows of up to 31 tokens a side.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor

import talkconv
from talkconv.bench import baselines
from talkconv.bench.measure import Timing, measure, peak_memory_of, plain, seconds_of
from talkconv.machine import headline, write_results
from talkconv.ops import memory

BATCH, DIM, HEADS, REACH = 10, 1024, 16, 31
SETTING = f"batch {BATCH}, d {DIM}, {HEADS} heads, l_max = r_max = {REACH}, float32"
OURS = "talk_conv"
NEW_MEMORY = "talk_conv, new memory"
# Tables of (B, H, T, T) beyond this many bytes are not tried: they would take the machine down.
MOST_BYTES = 6 << 30

Run = Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Contestant:
    """A function of tensors; training asks for the gradients of all of them."""

    function: Callable[..., Tensor]
    tensors: tuple[Tensor, ...]

    def forward(self) -> Tensor:
        return self.function(*self.tensors)

    def with_backward(self) -> Run:
        leaves = tuple(tensor.detach().requires_grad_() for tensor in self.tensors)
        grad = torch.randn_like(self.forward())

        def run() -> tuple[Tensor, ...]:
            return torch.autograd.grad(self.function(*leaves), leaves, grad)

        return run


def contestants(n: int, reach: int = REACH) -> dict[str, Contestant]:
    """Everything that encodes n tokens, by name."""
    x = torch.randn(BATCH, n, DIM)
    left, right = torch.rand(2, BATCH, n, HEADS)
    q, k, v = torch.randn(3, BATCH, HEADS, n, DIM // HEADS)
    found = {
        OURS: Contestant(
            functools.partial(talkconv.talk_conv, l_max=reach, r_max=reach), (x, left, right)
        ),
        "fused attention": Contestant(baselines.fused_attention, (q, k, v)),
        "depthwise conv, k=63": Contestant(
            baselines.depthwise_conv, (x.transpose(1, 2).contiguous(), torch.randn(DIM, 1, 63))
        ),
    }
    if BATCH * HEADS * n * n * 4 < MOST_BYTES:
        found["eager attention"] = Contestant(baselines.eager_attention, (q, k, v))
    for taps in (3, 31):
        weights = torch.randn(BATCH, n, HEADS, taps).softmax(-1)
        ways = {"unfold": baselines.dynamic_conv_unfold, "shift": baselines.dynamic_conv_shift}
        if BATCH * HEADS * n * n * 4 < MOST_BYTES:
            ways["band"] = baselines.dynamic_conv_band
        if BATCH * n * DIM * taps * 4 > MOST_BYTES:
            del ways["unfold"]
        for way, function in ways.items():
            found[f"DynamicConv k={taps}, {way}"] = Contestant(function, (x, weights))
    return found


def copies(n: int) -> dict[str, Run]:
    """What moving the memory alone costs."""
    x = torch.randn(BATCH, n, DIM)
    ready = torch.empty_like(x)
    return {"x.clone()": x.clone, "copy into ready memory": lambda: ready.copy_(x)}


def with_new_memory(run: Run) -> Run:
    """As the first call of a process: an earlier output's memory is not there to be used again."""

    def forgetful() -> object:
        memory.release()
        return run()

    return forgetful


def beside_copies(n: int, runs: Mapping[str, Run]) -> dict[str, Run]:
    """The runs of one round, our own with new memory too where it would be kept, and copies."""
    new = {NEW_MEMORY: with_new_memory(runs[OURS])}
    is_kept = BATCH * n * DIM * torch.float32.itemsize >= memory.LARGE
    return {**runs, **(new if is_kept else {}), **copies(n)}


def rounds(lengths: list[int]) -> Iterator[tuple[int, str, dict[str, Run]]]:
    """What is timed together: (n, direction, contestants).

    The longest first: short runs leave freed memory behind that long ones would find ready.
    """
    for n in sorted(lengths, reverse=True):
        found = contestants(n)
        yield n, "forward", beside_copies(n, {name: c.forward for name, c in found.items()})
        # a backward through a (B, H, T, T) table, or the fused kernel at 10 000, takes minutes
        trained = found if n <= 1000 else {OURS: found[OURS]}
        training = {name: c.with_backward() for name, c in trained.items()}
        yield n, "forward + backward", beside_copies(n, training)


def memory_beyond(n: int) -> dict[str, int | None]:
    """Peak bytes beyond inputs and outputs, forward and forward + backward."""
    ours = contestants(n)[OURS]
    x, left, _ = ours.tensors
    output = x.numel() * x.element_size()
    grads = output + 2 * left.numel() * left.element_size()
    found: dict[str, int | None] = {}
    for direction, run, owed in (
        ("forward", ours.forward, output),
        ("forward + backward", ours.with_backward(), output + grads),
    ):
        peak = peak_memory_of(run)
        found[direction] = None if peak is None else max(0, peak - owed)
    return found


def bench_op(
    lengths: Annotated[
        list[int] | None, typer.Option("--n", help="Sequence lengths to measure.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time for each contestant and length.")] = 2.0,
    out: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("results/op.json"),
) -> None:
    """Time the operation against attention, DynamicConv and copies; interleaved, with spread."""
    torch.manual_seed(0)
    console = Console()
    console.print(headline(SETTING))
    lengths = lengths or [10, 100, 1000, 10_000]
    results = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=2 * len(lengths))
        for n, direction, runs in rounds(lengths):
            progress.update(task, description=f"n = {n:,}, {direction}")
            timings = measure(runs, seconds=seconds)
            results.append({"n": n, "direction": direction, "timings": plain(timings)})
            console.print(table_of(n, direction, timings))
            progress.advance(task)
    beyond = [{"n": n, "bytes": memory_beyond(n)} for n in lengths]
    console.print(memory_table(beyond))
    scaling = {"length": length_scaling(seconds), "window": window_scaling(seconds)}
    console.print(scaling_table(scaling))
    write_results(out, {"timings": results, "memory beyond": beyond, "scaling": scaling})
    console.print(f"written to {out}")


def length_scaling(seconds: float, longest: int = 1_000_000) -> dict[int, float]:
    """Seconds by length, doubling up to `longest`; batch 1, d = 256."""
    runs: dict[str, Run] = {}
    lengths = [longest // 2**power for power in range(5, -1, -1)]
    for n in lengths:
        x, offsets = torch.randn(1, n, 256), torch.rand(2, 1, n, 4)
        runs[str(n)] = functools.partial(
            talkconv.talk_conv, x, offsets[0], offsets[1], l_max=REACH, r_max=REACH
        )
    timings = measure(runs, seconds=seconds, timer=_second_run)
    return {n: timings[str(n)].median for n in lengths}


def _second_run(run: Run) -> float:
    """In a row: the outputs of all lengths together are more memory than is kept."""
    run()
    return seconds_of(run)


def window_scaling(seconds: float, n: int = 1000) -> dict[int, float]:
    """Seconds by l_max = r_max; the time should not depend on it."""
    reaches = (3, 7, 31, 127, 255)
    ours = contestants(n)[OURS]
    runs: dict[str, Run] = {
        str(reach): functools.partial(talkconv.talk_conv, *ours.tensors, l_max=reach, r_max=reach)
        for reach in reaches
    }
    timings = measure(runs, seconds=seconds)
    return {reach: timings[str(reach)].median for reach in reaches}


def table_of(n: int, direction: str, timings: dict[str, Timing]) -> Table:
    table = Table(title=f"n = {n:,}, {direction}", title_justify="left")
    table.add_column("")
    table.add_column("ms, median (quartiles)", justify="right")
    table.add_column("times talk_conv", justify="right")
    table.add_column("over x.clone()", justify="right")
    ours, clone = timings[OURS].median, timings["x.clone()"].median
    for name, timing in sorted(timings.items(), key=lambda item: item[1].median):
        style = "bold" if name == OURS else ""
        ratios = f"{timing.median / ours:.2f}", f"{timing.median / clone:.2f}"
        table.add_row(name, str(timing), *ratios, style=style)
    return table


def memory_table(beyond: list[dict[str, Any]]) -> Table:
    table = Table(title="Memory beyond inputs and outputs, MiB at the peak", title_justify="left")
    for heading in ("n", "forward", "forward + backward"):
        table.add_column(heading, justify="right")
    for row in beyond:
        cells = ("–" if b is None else f"{b / 2**20:.2f}" for b in row["bytes"].values())
        table.add_row(f"{row['n']:,}", *cells)
    return table


def scaling_table(scaling: dict[str, dict[int, float]]) -> Table:
    table = Table(title="Scaling, forward", title_justify="left")
    for heading in ("", "ms", "times the row above"):
        table.add_column(heading, justify="right")
    for name, label in (("length", "n = {:,} (batch 1, d 256)"), ("window", "l_max = r_max = {}")):
        before = None
        for key, seconds in scaling[name].items():
            ratio = "" if before is None else f"{seconds / before:.2f}"
            table.add_row(label.format(key), f"{seconds * 1e3:.2f}", ratio)
            before = seconds
        table.add_section()
    return table
