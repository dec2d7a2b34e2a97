"""Operations that all processes of a run do together."""

import torch
import torch.distributed as dist


def wait_for_all() -> None:
    """Wait until every process has called this function."""
    if dist.is_initialized():
        dist.barrier()


def any_process(value: bool, device: torch.device) -> bool:
    """Return whether `value` is true in any process. All processes must call it together."""
    if not dist.is_initialized():
        return value
    asked = torch.tensor(float(value), device=device)
    dist.all_reduce(asked, dist.ReduceOp.MAX)
    return bool(asked)
