"""`talkconv bench gpu`: the operation against fused attention, timed on the GPU of this machine.

`benchmarks/on_a_gpu.sh` runs it after the tests. Only these times are measured on a GPU; those of
`talkconv bench kernels` are estimates.
"""

import functools
import importlib.metadata
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

import talkconv
from talkconv.bench import baselines, definitions
from talkconv.bench.correctness import SMALL, gradient_error, judged, output_error, refuse_on_red
from talkconv.bench.inputs import DIRECTIONS, Contestant, Inputs, Setting, offsets_between_tokens
from talkconv.bench.kernels import FAST, REACHES
from talkconv.bench.measure import Run, Timing, measure, milliseconds, seconds_of
from talkconv.bench.page.markdown import NOTHING, table
from talkconv.machine import headline, write_results
from talkconv.messages import one_message

LENGTHS = [1000, 4000, 10_000]
FUSED = "fused attention"
# A slow contestant is not run again after so many seconds.
ENOUGH = 5.0

Reaches = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Row:
    """The times of all contestants of one size; None for one that the memory is too small for."""

    n: int
    dtype: str
    direction: str
    timings: dict[str, Timing | None]


def find_gpu() -> torch.device:
    """Return the GPU, or raise a ValueError that says why there is none."""
    if not torch.cuda.is_available():
        built_for = torch.version.cuda or torch.version.hip
        raise ValueError(
            "torch finds no GPU. `nvidia-smi` (or `rocm-smi`) must list one, and torch must be "
            f"built for it; torch {torch.__version__} is built for "
            + (f"version {built_for} of the GPU's libraries" if built_for else "CPUs alone")
        )
    return torch.device("cuda", torch.cuda.current_device())


def describe_gpu(device: torch.device) -> dict[str, Any]:
    """Return what a time on a GPU needs to stand, beside what describe_machine() says."""
    about = torch.cuda.get_device_properties(device)
    return {
        "name": about.name,
        "capability": f"{about.major}.{about.minor}",
        "memory": about.total_memory,
        "multiprocessors": about.multi_processor_count,
        "driver": _driver(),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "triton": importlib.metadata.version("triton"),
    }


def _driver() -> str | None:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.splitlines()[0].strip() if said.strip() else None


def name_of(l_max: int, r_max: int) -> str:
    return f"TaLK, window {l_max + r_max:,}"


def ours(setting: Setting, reaches: Reaches, device: torch.device) -> dict[str, Contestant]:
    """Return the operation with windows of several lengths, by name."""
    x = Inputs(setting).x.to(device)
    found = {}
    for l_max, r_max in reaches:
        shape = setting.batch, setting.n, setting.heads
        offsets = (
            offsets_between_tokens(shape, reach).to(device, setting.dtype)
            for reach in (l_max, r_max)
        )
        found[name_of(l_max, r_max)] = Contestant(
            functools.partial(talkconv.talk_conv, l_max=l_max, r_max=r_max),
            (x, *offsets),
            functools.partial(talkconv.reference.talk_conv, l_max=l_max, r_max=r_max),
        )
    return found


def fused(setting: Setting, device: torch.device) -> dict[str, Contestant]:
    """Return PyTorch's fused attention over all tokens, by name."""
    qkv = tuple(tensor.to(device) for tensor in Inputs(setting).qkv)
    return {FUSED: Contestant(baselines.fused_attention, qkv, definitions.attention)}


def check(settings: Sequence[Setting], reaches: Reaches, device: torch.device) -> None:
    """Raise a ValueError if the operation or its gradients are wrong on this device."""
    torch.manual_seed(0)
    # Half-precision offsets times an even number are often integers, where derivatives jump.
    odd = [(l_max | 1, r_max | 1) for l_max, r_max in reaches]
    findings = []
    for setting in settings:
        for name, one in ours(setting, odd, device).items():
            error = max(output_error(one), gradient_error(one))
            findings.append(judged(f"{name}, {_short(setting.dtype)}", error, setting.dtype))
    refuse_on_red(findings)


def timer_for(device: torch.device) -> Callable[[Run], float]:
    """Return a function that takes the seconds of a run on a device."""
    return _seconds_on_gpu if device.type == "cuda" else seconds_of


def _seconds_on_gpu(run: Run) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    end.synchronize()
    milliseconds_taken: float = begin.elapsed_time(end)
    return milliseconds_taken / 1e3


def rows(
    settings: Sequence[Setting], reaches: Reaches, device: torch.device, seconds: float
) -> Iterator[Row]:
    """Time the operation and fused attention, in turns, for all sizes and both directions."""
    for setting in settings:
        contestants = {**ours(setting, reaches, device), **fused(setting, device)}
        for direction in DIRECTIONS:
            runs = {name: each.run(direction) for name, each in contestants.items()}
            fitting = {name: run for name, run in runs.items() if _fits(run)}
            found = measure(fitting, seconds=seconds, enough=ENOUGH, timer=timer_for(device))
            timings = {name: found.get(name) for name in runs}
            yield Row(setting.n, _short(setting.dtype), direction, timings)


def _fits(run: Run) -> bool:
    """Run once, which also compiles; return whether the memory was large enough."""
    try:
        run()
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return False
    return True


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def table_of(found: Sequence[Row]) -> str:
    """Return all times in milliseconds as the table for docs/gpu.md."""
    names = list(found[0].timings)
    lines = [
        [f"{row.direction}, {row.dtype}", f"{row.n:,}", *map(_cell, row.timings.values())]
        for row in found
    ]
    return table(["", "n", *names], lines)


def _cell(timing: Timing | None) -> str:
    return NOTHING if timing is None else milliseconds(timing.median)


def bench_gpu(
    lengths: Annotated[
        list[int] | None,
        typer.Option("--n", help="A sequence length to measure, repeatable.", show_default=False),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time for each contestant and length.")] = 0.3,
    out: Annotated[
        Path | None, typer.Option(help="A JSON file to write; without it nothing is written.")
    ] = None,
) -> None:
    """Time the operation against fused attention on the GPU of this machine."""
    console = Console()
    with one_message("not measured"):
        device = find_gpu()
        check([replace(SMALL, n=300, dtype=dtype) for dtype in FAST], REACHES, device)
    settings = [Setting(n, dtype=dtype) for dtype in FAST for n in lengths or LENGTHS]
    about = describe_gpu(device)
    console.print(headline(f"{about['name']}, driver {about['driver']}, Triton {about['triton']}"))
    console.print(f"batch {settings[0].batch}, d {settings[0].dim}, {settings[0].heads} heads, ms")
    found = []
    for row in rows(settings, REACHES, device, seconds):
        console.print(f"n = {row.n:,}, {row.direction}, {row.dtype}", highlight=False)
        found.append(row)
    console.print(table_of(found), soft_wrap=True, highlight=False)
    if out is not None:
        write_results(out, {"gpu": about, "rows": [asdict(row) for row in found]})
        console.print(f"written to {out}", soft_wrap=True)
