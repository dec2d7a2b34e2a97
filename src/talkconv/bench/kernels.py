"""`talkconv bench kernels` compiles the GPU kernels and estimates their times.

Every launch is planned by the same code as a call on a GPU and compiled ahead of time for GPUs that
need not be present. The tables have registers, spills and shared memory, and instructions and bytes
for each element of the result.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from talkconv.bench import op
from talkconv.machine import write_results
from talkconv.messages import one_message
from talkconv.ops import gpu
from talkconv.ops.checks import DTYPES

if TYPE_CHECKING:
    from talkconv.bench.gpu_compile import Usage
    from talkconv.bench.gpu_estimate import Target
    from talkconv.ops.gpu_steps import Launch, Sort

TOKENS = 10_000
# l_max and r_max: windows of 62, 254 and 4 095 tokens
REACHES = ((31, 31), (127, 127), (2047, 2048))
FAST = (torch.float32, torch.bfloat16)


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of the operation: its steps on the GPU, and the elements of its result."""

    name: str
    dtype: torch.dtype
    window: int
    elements: int
    steps: "list[Launch | Sort]"

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")


def calls(
    dtypes: tuple[torch.dtype, ...] = FAST,
    reaches: tuple[tuple[int, int], ...] = REACHES,
    head_channels: int = op.DIM // op.HEADS,
) -> Iterator[Call]:
    """Yield forward and backward calls in the setting of `bench op`, on tensors without memory."""
    plans = gpu.plans()
    for dtype in dtypes:
        x = _empty(op.BATCH, TOKENS, op.HEADS * head_channels, dtype=dtype)
        offsets = _empty(op.BATCH, TOKENS, op.HEADS, dtype=dtype)
        for l_max, r_max in reaches:
            windows = plans.Windows(offsets, offsets, l_max, r_max, 1.0, True)
            about = (dtype, l_max + r_max, x.numel())
            yield Call("forward", *about, plans.forward(x, windows, x))
            grads = (x, offsets, offsets)
            yield Call("backward", *about, plans.backward(x, x, windows, grads))
        one = offsets[:, :1]
        causal = plans.Windows(one, one, op.REACH, 0, 1.0, True)
        window, out = x[:, : op.REACH + 1], x[:, :1]
        step = plans.forward(window, causal, out, context=op.REACH)
        yield Call("step", dtype, op.REACH, out.numel(), step)


def odd_calls() -> Iterator[Call]:
    """Yield calls of other kinds: with lengths, packed, causal, and with odd channels."""
    plans = gpu.plans()
    lengths = _empty(op.BATCH, dtype=torch.int64)
    cu_seqlens = _empty(op.BATCH + 1, dtype=torch.int32)
    for dtype in DTYPES:
        x = _empty(op.BATCH, TOKENS, 21, dtype=dtype)
        offsets = _empty(op.BATCH, TOKENS, 7, dtype=dtype)
        windows = plans.Windows(offsets, offsets, 200, 100, 1.1, False)
        grads = (x, offsets, offsets)
        about = (dtype, 330, x.numel())
        yield Call("forward, lengths", *about, plans.forward(x, windows, x, lengths))
        yield Call("backward, lengths", *about, plans.backward(x, x, windows, grads, lengths))
        for l_max in (7, 700):
            causal = plans.Windows(offsets[0], offsets[0], l_max, 0, 1.0, True)
            about = (dtype, l_max, x[0].numel())
            yield Call(
                "forward, packed", *about, plans.forward(x[0], causal, x[0], None, cu_seqlens)
            )
            grads = (x[0], offsets[0], offsets[0])
            steps = plans.backward(x[0], x[0], causal, grads, None, cu_seqlens)
            yield Call("backward, packed", *about, steps)


def _empty(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


def occupancy(target: "Target", usage: "Usage", warps: int) -> float:
    """Return the warps that one multiprocessor can hold at a time, as a share of its most."""
    if target.backend == "hip":
        # Each of the four units has 512 vector registers per lane, for at most 8 waves.
        by_registers = 4 * min(8, 512 // _round_up(usage.registers, 8)) // warps
        most_programs = target.most_warps // warps
    else:
        by_registers = 65_536 // (_round_up(usage.registers, 8) * 32 * warps)
        most_programs = min(target.most_warps // warps, 32)
    by_shared = target.shared // (usage.shared + 1024) if usage.shared else by_registers
    return min(by_registers, by_shared, most_programs) * warps / target.most_warps


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def measured(target: "Target", call: Call) -> list[dict[str, Any]]:
    """Compile the kernels of a call for a GPU, and return a row about each of its steps."""
    # Triton takes time to import, and the other commands do not need it.
    from talkconv.bench.gpu_compile import compile_ahead
    from talkconv.bench.gpu_estimate import bytes_of, seconds_of, work_of
    from talkconv.ops.gpu_steps import Launch

    rows = []
    for step in call.steps:
        row: dict[str, Any] = dict(
            target=target.name,
            call=call.name,
            dtype=call.dtype_name,
            window=call.window,
            kernel="torch.sort",
            least_bytes=bytes_of(step) / call.elements,
        )
        work = None
        if isinstance(step, Launch):
            compiled = compile_ahead(step, target.backend, target.arch, target.warp)
            row["kernel"] = step.kernel.__name__
            row |= dataclasses.asdict(compiled.usage)
            row["shared_limit"] = target.shared_limit
            row["occupancy"] = occupancy(target, compiled.usage, step.warps)
            # The instructions are counted only for the usual shapes.
            if target.instructions and call.name in ("forward", "backward", "step"):
                work = work_of(step, compiled.code, call.elements)
                row["instructions"], row["asked_bytes"] = work.instructions, work.bytes
        row["seconds"] = seconds_of(target, step, work, call.elements)
        rows.append(row)
    return rows


def kernels_table(target: "Target", rows: list[dict[str, Any]]) -> Table:
    table = Table(title=f"{target.name} ({target.arch})", title_justify="left")
    for heading in ("call", "dtype", "kernel"):
        table.add_column(heading)
    numbers = {
        "registers": "{}",
        "spilled": "{}",
        "shared": "{}",
        "occupancy": "{:.0%}",
        "instructions": "{:.1f}",
        "asked_bytes": "{:.1f}",
        "least_bytes": "{:.1f}",
        "seconds": "{:.3f}",
    }
    short = {"asked_bytes": "B asked", "least_bytes": "B least", "seconds": "ms"}
    for name in numbers:
        table.add_column(short.get(name, name), justify="right")
    shown = set()
    for row in rows:
        values = {**row, "seconds": row["seconds"] * 1e3}
        # Most kernels do the same for every window, so equal rows are shown once.
        about = (row["dtype"], row["kernel"], row["call"][0], f"{values['seconds']:.2f}")
        if about in shown:
            continue
        shown.add(about)
        cells = (
            form.format(values[name]) if name in row else "–" for name, form in numbers.items()
        )
        table.add_row(f"{row['call']}, {row['window']:,}", row["dtype"], row["kernel"], *cells)
    return table


def expected_times(rows: list[dict[str, Any]]) -> dict[tuple[str, str, int], dict[str, float]]:
    """Sum the seconds of the steps of each call, by (call, dtype, window) and then by GPU."""
    found: dict[tuple[str, str, int], dict[str, float]] = {}
    for row in rows:
        times = found.setdefault((row["call"], row["dtype"], row["window"]), {})
        times[row["target"]] = times.get(row["target"], 0) + row["seconds"]
    return found


def times_table(rows: list[dict[str, Any]]) -> Table:
    times = expected_times(rows)
    names = list(dict.fromkeys(row["target"] for row in rows))
    table = Table(title="Expected times, ms", title_justify="left")
    for heading in ("", "dtype", "window", *names):
        table.add_column(heading, justify="right" if heading in names else "left")
    for (call, dtype, window), by_target in times.items():
        cells = (f"{by_target[name] * 1e3:.3f}" for name in names)
        table.add_row(call, dtype, f"{window:,}", *cells)
    return table


def bench_kernels(
    every_way: Annotated[
        bool, typer.Option("--all", help="Also all dtypes, lengths, packed and odd shapes.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="A JSON file to write; without it nothing is written.")
    ] = None,
) -> None:
    """Compile the GPU kernels for several GPUs, count their work and estimate their times."""
    with one_message("not compiled"):
        gpu.plans()
    from talkconv.bench.gpu_estimate import TARGETS

    console = Console()
    chosen = [*calls(DTYPES if every_way else FAST), *(odd_calls() if every_way else ())]
    console.print(
        f"batch {op.BATCH}, d {op.DIM}, {op.HEADS} heads, n = {TOKENS:,}\n"
        "Instructions and bytes are for each element of the result; B least: every tensor once.\n"
        "ms: the largest of the times for memory, products and instructions, by the data sheet"
    )
    rows = []
    for target in TARGETS:
        of_target = []
        for call in track(chosen, f"compiling for {target.name}", transient=True):
            of_target += measured(target, call)
        console.print(kernels_table(target, of_target))
        rows += of_target
    console.print(times_table(rows))
    if out is not None:
        write_results(out, {"kernels": rows})
        console.print(f"written to {out}")
