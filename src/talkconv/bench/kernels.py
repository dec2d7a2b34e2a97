"""`talkconv bench kernels`: what the GPU kernels compile to, without a GPU; with one, their speed.

Every launch is planned by the same code as a call on a GPU and compiled ahead of time for GPUs that
need not be here: registers, spills, shared memory, how many programs run side by side.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from talkconv.bench import op
from talkconv.bench.measure import measure, plain
from talkconv.machine import write_results
from talkconv.ops import gpu
from talkconv.ops.checks import DTYPES

if TYPE_CHECKING:
    from talkconv.bench.gpu_compile import Usage

TOKENS = 10_000


@dataclasses.dataclass(frozen=True)
class Target:
    """A GPU: how to compile for it, and its data sheet."""

    name: str
    backend: str
    arch: int | str
    shared_limit: int  # bytes a program may use
    shared: int  # bytes of one multiprocessor
    warp: int
    most_warps: int  # of one multiprocessor
    bandwidth: float  # bytes a second
    tensor_flops: float  # half precision, dense, a second


TARGETS = (
    Target("A100", "cuda", 80, 166_912, 167_936, 32, 64, 2.04e12, 312e12),
    Target("H100", "cuda", 90, 232_448, 233_472, 32, 64, 3.35e12, 989e12),
    Target("B200", "cuda", 100, 232_448, 233_472, 32, 64, 8.0e12, 2250e12),
    Target("MI300X", "hip", "gfx942", 65_536, 65_536, 64, 32, 5.3e12, 1307e12),
)


@dataclasses.dataclass(frozen=True)
class Case:
    """One launch, and what it does for each element of its output."""

    name: str
    dtype: torch.dtype
    launch: gpu.Launch
    least_bytes: float  # every tensor once: what memory must move
    asked_bytes: float  # all loads and stores: what the caches in front of it are asked for
    flops: float  # on tensor cores

    def seconds(self, target: Target) -> float | None:
        """The least time by the data sheet: memory or tensor cores, whichever takes longer.

        None for float64, which uses neither tensor cores nor nearly all of the bandwidth.
        """
        if self.dtype == torch.float64:
            return None
        arguments = self.launch.arguments
        elements = arguments.get("out", arguments["x"]).numel()
        by_memory = self.least_bytes / target.bandwidth
        by_flops = self.flops / target.tensor_flops
        return float(elements * max(by_memory, by_flops))


def cases(head_channels: int = 64, reach: int = op.REACH) -> Iterator[Case]:
    """All kernels in all dtypes, in the setting of `bench op`. Tensors without memory will do."""
    H = op.HEADS
    for dtype in DTYPES:
        x, out = torch.empty(
            2, op.BATCH, TOKENS, H * head_channels, dtype=dtype, device="meta"
        ).unbind()
        offsets = torch.empty(op.BATCH, TOKENS, H, dtype=dtype, device="meta")
        windows = gpu.Windows(offsets, offsets, reach, reach, 1.0, True)
        forward = gpu.plan_forward(x, windows, out)
        yield _case("forward", dtype, forward)
        yield _case("backward", dtype, gpu.plan_backward(out, x, windows, (out, offsets, offsets)))
        one = offsets[:, :1]
        causal = gpu.Windows(one, one, reach, 0, 1.0, True)
        yield _case(
            "step", dtype, gpu.plan_forward(x[:, : reach + 1], causal, out[:, :1], context=reach)
        )


def odd_cases() -> Iterator[Case]:
    """The other ways through the kernels: lengths, packed, causal, long windows, any channels."""
    lengths = torch.empty(op.BATCH, dtype=torch.int64, device="meta")
    cu_seqlens = torch.empty(op.BATCH + 1, dtype=torch.int32, device="meta")
    for dtype in DTYPES:
        x = torch.empty(op.BATCH, TOKENS, 21, dtype=dtype, device="meta")
        offsets = torch.empty(op.BATCH, TOKENS, 7, dtype=dtype, device="meta")
        windows = gpu.Windows(offsets, offsets, 200, 100, 1.1, False)
        grads = (x, offsets, offsets)
        yield _case("forward, lengths", dtype, gpu.plan_forward(x, windows, x, lengths))
        yield _case("backward, lengths", dtype, gpu.plan_backward(x, x, windows, grads, lengths))
        packed = gpu.Windows(offsets[0], offsets[0], 7, 0, 1.0, True)
        ends: tuple[None, Tensor] = (None, cu_seqlens)
        yield _case("forward, packed", dtype, gpu.plan_forward(x[0], packed, x[0], *ends))
        grads = (x[0], offsets[0], offsets[0])
        yield _case("backward, packed", dtype, gpu.plan_backward(x[0], x[0], packed, grads, *ends))


def _case(name: str, dtype: torch.dtype, launch: gpu.Launch) -> Case:
    arguments = launch.arguments
    # halo: how often a row is read, by its own block and by those around
    walked = arguments["BLOCK"] + arguments["reach_left"] + arguments["reach_right"]
    halo = walked / arguments["BLOCK"]
    offsets = ((arguments["left"] is not None) + (arguments["right"] is not None)) / arguments[
        "head_channels"
    ]
    is_backward = "grad_x" in arguments
    if is_backward:
        # grad_out, x and grad_x; asked for are grad_out twice and two edges of x
        least, asked = 3 + 2 * offsets, halo * (1 + offsets) + 4 + 2 * offsets
    elif arguments["context"]:
        least = asked = walked - arguments["BLOCK"] + 2 + offsets
    else:
        least, asked = 2 + offsets, halo + 1 + offsets
    products = {torch.float32: 6, torch.float64: 0}.get(dtype, 2)
    flops = 2 * products * arguments["TILE"] * math.ceil(walked / arguments["TILE"])
    return Case(name, dtype, launch, least * dtype.itemsize, asked * dtype.itemsize, flops)


def occupancy(target: Target, usage: "Usage", warps: int) -> float:
    """Warps that one multiprocessor can hold at a time, as a share of the most it can."""
    if target.backend == "hip":
        # each of four units has 512 vector registers a lane, for at most 8 waves
        by_registers = 4 * min(8, 512 // _round_up(usage.registers, 8)) // warps
    else:
        by_registers = 65_536 // (_round_up(usage.registers, 8) * 32 * warps)
    by_shared = target.shared // (usage.shared + 1024) if usage.shared else by_registers
    programs = min(by_registers, by_shared, target.most_warps // warps)
    return programs * warps / target.most_warps


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def compilations(target: Target, chosen: list[Case]) -> list[dict[str, Any]]:
    # the other commands need no Triton and should not wait for it
    from talkconv.bench.gpu_compile import compile_ahead

    rows = []
    for case in track(chosen, f"compiling for {target.name}", transient=True):
        compiled = compile_ahead(case.launch, target.backend, target.arch, target.warp)
        usage = compiled.usage
        rows.append(
            dict(
                target=target.name,
                kernel=case.name,
                dtype=str(case.dtype).removeprefix("torch."),
                **dataclasses.asdict(usage),
                shared_limit=target.shared_limit,
                occupancy=occupancy(target, usage, int(case.launch.options["num_warps"])),
                asked_bytes=case.asked_bytes,
                least_bytes=case.least_bytes,
                seconds=case.seconds(target),
            )
        )
    return rows


def table_of(target: Target, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=f"{target.name} ({target.arch})", title_justify="left")
    table.add_column("kernel")
    table.add_column("dtype")
    for heading in ("registers", "spilled", "shared", "occupancy", "B asked", "B least", "ms"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row["kernel"],
            row["dtype"],
            *(str(row[name]) for name in ("registers", "spilled", "shared")),
            f"{row['occupancy']:.0%}",
            f"{row['asked_bytes']:.1f}",
            f"{row['least_bytes']:.1f}",
            "–" if row["seconds"] is None else f"{row['seconds'] * 1e3:.3f}",
        )
    return table


def gpu_seconds_of(run: Callable[[], object]) -> float:
    """By CUDA events, on the GPU's own clock."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3


def time_on_gpu(console: Console, lengths: list[int], seconds: float) -> list[dict[str, Any]]:
    """The contestants of `bench op`, on the GPU."""
    results = []
    with torch.device("cuda"):
        for n, direction, runs in op.rounds(lengths):
            timings = measure(runs, seconds=seconds, timer=gpu_seconds_of)
            console.print(op.table_of(n, direction, timings))
            results.append({"n": n, "direction": direction, "timings": plain(timings)})
    return results


def bench_kernels(
    every_way: Annotated[
        bool, typer.Option("--all", help="Also lengths, packed, causal and odd shapes.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="Time for each contestant on a GPU.")] = 2.0,
    out: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("results/kernels.json"),
) -> None:
    """Compile the GPU kernels for GPUs near and far; where there is one, time them on it."""
    try:
        gpu.kernels()
    except RuntimeError as error:
        raise SystemExit(f"talkconv: {error}") from error
    console = Console()
    chosen = [*cases(), *(odd_cases() if every_way else ())]
    console.print(
        f"batch {op.BATCH}, d {op.DIM}, {op.HEADS} heads, l_max = r_max = {op.REACH}, "
        f"n = {TOKENS:,}\nB: bytes per element of the output. ms: the least by the data sheet"
    )
    results: dict[str, Any] = {"compiled": []}
    for target in TARGETS:
        rows = compilations(target, chosen)
        console.print(table_of(target, rows))
        results["compiled"] += rows
    if torch.cuda.is_available():
        results["timings"] = time_on_gpu(console, [10, 100, 1000, 10_000], seconds)
    else:
        console.print("No GPU here: nothing was run.")
    write_results(out, results)
    console.print(f"written to {out}")
