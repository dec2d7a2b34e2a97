"""Joins the processes that torchrun started into one group, also after it restarted them.

Processes find each other through a store that torchrun keeps for all restarts of one launch. It
still holds the addresses of processes that are gone, and a new process that reads one of them fails
to connect. The processes therefore agree on a new name first, and write all else under that name.
"""

import os
import time
import uuid
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from talkconv.training.processes import process, processes

TIMEOUT = timedelta(minutes=10)
_PAUSE = 0.02
# torch has no types for its stores
Store = Any


def join_processes() -> None:
    """Join the processes of torchrun, unless they are joined already or there is no torchrun."""
    if "WORLD_SIZE" not in os.environ or dist.is_initialized():
        return
    torch_distributed: Any = dist
    store = torch_distributed.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        processes(),
        # some launchers leave the store to the first process
        is_master=process() == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True",
        timeout=TIMEOUT,
        wait_for_workers=False,
        multi_tenant=True,
    )
    name = agree_on_name(store, process(), processes())
    dist.init_process_group(
        backend="cuda:nccl,cpu:gloo" if torch.cuda.is_available() else "gloo",
        store=torch_distributed.PrefixStore(name, store),
        rank=process(),
        world_size=processes(),
    )


def agree_on_name(store: Store, rank: int, size: int, timeout: timedelta = TIMEOUT) -> str:
    """Return a name that all `size` processes get, and that no earlier processes had.

    Entries of earlier processes in the store are ignored. The first process writes a new name, each
    other process answers with that name and a name of its own, and the first process confirms it.
    """
    mine = uuid.uuid4().hex
    deadline = time.monotonic() + timeout.total_seconds()
    if rank == 0:
        store.set("leader", mine)
        for other in range(1, size):
            while not (answer := _read(store, f"answer/{other}")).startswith(mine):
                _pause(deadline, f"process {other} of {size}")
            store.set(f"welcome/{other}", answer.removeprefix(mine))
        return mine
    while True:
        leader = _read(store, "leader")
        store.set(f"answer/{rank}", leader + mine)
        if _read(store, f"welcome/{rank}") == mine:
            return leader
        _pause(deadline, "the first process")


def _read(store: Store, key: str) -> str:
    return str(store.get(key), "utf-8") if store.check([key]) else ""


def _pause(deadline: float, other: str) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError(
            f"{other} did not connect: torchrun must be started on every machine, with the same "
            "--nnodes, --rdzv-id and --rdzv-endpoint"
        )
    time.sleep(_PAUSE)
