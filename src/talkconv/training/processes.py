"""The processes that torchrun started for a run, as each of them sees the others."""

import os

import torch
import torch.distributed as dist


def process() -> int:
    """Return the number of this process among all of them; the first is 0."""
    return int(os.environ.get("RANK", "0"))


def processes() -> int:
    """Return how many processes torchrun started on all machines."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def wait_for_all() -> None:
    """Wait until every process has come here."""
    if dist.is_initialized():
        dist.barrier()


def any_process(value: bool, device: torch.device) -> bool:
    """Tell whether `value` is true in any process; all processes must ask together."""
    if not dist.is_initialized():
        return value
    asked = torch.tensor(float(value), device=device)
    dist.all_reduce(asked, dist.ReduceOp.MAX)
    return bool(asked)
