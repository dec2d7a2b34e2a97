"""Estimates how long a launch takes on a GPU, from its compiled code and the GPU's data sheet.

A launch takes at least the largest of three times: its bytes divided by the memory bandwidth, its
products divided by the rate of the tensor cores, and its instructions divided by the rate at which
they can be issued. Launches run one after the other, so their times add up.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from talkconv.bench.data_sheets import A100, B200, H100, MI300X, Sheet
from talkconv.bench.gpu_code import Code, Loop, Work
from talkconv.ops.gpu_steps import Launch, Sort

# torch sorts 32-bit integers by 8 bits in each pass, and moves a 64-bit index with each of them.
SORT_PASSES = 4
THREADS_OF_A_WARP = 32


@dataclass(frozen=True)
class Target:
    """A GPU: its data sheet, the arguments to compile for it, and its multiprocessors."""

    name: str
    sheet: Sheet
    backend: str
    arch: int | str
    shared_limit: int  # bytes a program may use
    shared: int  # bytes of one multiprocessor
    warp: int
    most_warps: int  # of one multiprocessor
    instructions: float  # of all threads, a second; 0 if nothing is known about its code
    float64: float  # instructions for float64 of all threads, a second


# Each multiprocessor issues an instruction of four warps in a cycle, at the boost clock.
TARGETS = (
    Target("A100", A100, "cuda", 80, 166_912, 167_936, 32, 64, 19.5e12, 4.85e12),
    Target("H100", H100, "cuda", 90, 232_448, 233_472, 32, 64, 33.5e12, 16.7e12),
    Target("B200", B200, "cuda", 100, 232_448, 233_472, 32, 64, 37.5e12, 18.5e12),
    Target("MI300X", MI300X, "hip", "gfx942", 65_536, 65_536, 64, 32, 0, 0),
)


def work_of(launch: Launch, code: Code, elements: int) -> Work:
    """Count the work of a launch for each element of its result."""
    # A repair that finds nothing to do ends at the first exit.
    found = code.work(loops_of(launch, code), until_first_exit=is_repair(launch))
    threads = launch.programs * launch.warps * THREADS_OF_A_WARP
    share = threads / elements
    return Work(found.instructions * share, found.float64 * share, found.bytes * share)


def loops_of(launch: Launch, code: Code) -> list[tuple[Loop, float]]:
    """Return how often each loop of a program runs. The numbers follow from the arguments."""
    name = launch.kernel.__name__
    trips = _TRIPS[name](launch.arguments)
    loops = code.loops
    if name == "dense_grad_x":
        # the other loops wait for the tensor cores
        loops = sorted(loops, key=lambda loop: loop.first - loop.last)[:1]
    if len(loops) < len(trips) or (name in _NO_OTHER_LOOPS and len(loops) != len(trips)):
        raise AssertionError(f"{name} should have {len(trips)} loops, its code has {len(loops)}")
    return list(zip(loops, trips, strict=False))


def is_repair(step: Launch | Sort) -> bool:
    """Return whether a launch only repairs what another one left out. Usually that is nothing."""
    return (
        isinstance(step, Launch)
        and step.kernel.__name__ == "direct"
        and (step.arguments["wild"] is not None)
    )


def _trips_of_direct(arguments: dict[str, Any]) -> list[float]:
    """Count the loops over the marks of a repair, or over the windows of the tokens."""
    if arguments["wild"] is None:
        reach = arguments["reach_left"] + arguments["reach_right"] + 1
        return [math.ceil(reach / arguments["TILE"])]
    tokens = arguments["BLOCK"] + arguments["reach_left"] + arguments["reach_right"]
    return [1, math.ceil((tokens / arguments["UNIT"] + 2) / 32)]


def _trips_of_walk(arguments: dict[str, Any]) -> list[float]:
    """Count the search, the events before the block, its tokens, and two events for each token."""
    search = math.log2(2 * arguments["tokens"])
    return [search, arguments["CHUNK"] / 2, arguments["BLOCK"], 2]


_TRIPS: dict[str, Callable[[dict[str, Any]], list[float]]] = {
    "chunk_sums": lambda a: [a["CHUNK"] / a["STEP"]],
    "scan_totals": lambda a: [math.ceil((a["tokens"] // a["CHUNK"] + 1) / a["ROWS"])],
    "read_windows": lambda a: [],
    "direct": _trips_of_direct,
    "offset_grads": lambda a: [],
    "window_events": lambda a: [],
    "event_sums": lambda a: [a["CHUNKS"]],
    "walk_events": _trips_of_walk,
    "dense_grad_x": lambda a: [_tiles_of(a)],
}
# walk_events() has other loops that write zeros, which do not run here. direct() has other loops
# that sum windows, which run only if a repair finds something.
_NO_OTHER_LOOPS = set(_TRIPS) - {"direct", "walk_events", "dense_grad_x"}


def _tiles_of(arguments: dict[str, Any]) -> int:
    tokens = arguments["BLOCK"] + arguments["reach_left"] + arguments["reach_right"]
    return math.ceil(int(tokens) / int(arguments["TILE"]))


def bytes_of(step: Launch | Sort) -> float:
    """Return the bytes that memory must move: each tensor once, because caches serve the rest."""
    if isinstance(step, Sort):
        key_and_index = step.keys.element_size() + step.order.element_size()
        return SORT_PASSES * 2 * key_and_index * step.keys.numel()
    tensors = [value for value in step.arguments.values() if isinstance(value, Tensor)]
    if is_repair(step):
        # A repair that finds nothing to do reads only the marks.
        tensors = [step.arguments["wild"]]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def flops_of(step: Launch | Sort) -> float:
    """Return the operations on tensor cores."""
    if isinstance(step, Sort) or step.kernel.__name__ != "dense_grad_x":
        return 0
    grad_x = step.arguments["grad_x"]
    products = 6 if grad_x.dtype == torch.float32 else 2
    tokens = _tiles_of(step.arguments) * step.arguments["TILE"]
    return float(2 * products * tokens * grad_x.numel())


def seconds_of(target: Target, step: Launch | Sort, work: Work | None, elements: int) -> float:
    """Return the largest of the times for memory, products and instructions."""
    times = [bytes_of(step) / target.sheet.bandwidth, flops_of(step) / target.sheet.flops]
    if work is not None and target.instructions:
        times.append(elements * work.instructions / target.instructions)
        times.append(elements * work.float64 / target.float64)
    return max(times)
