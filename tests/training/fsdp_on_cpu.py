"""`talkconv train` with training.fsdp on a CPU. Run by torchrun from test_distributed.py.

accelerate shards networks only on GPUs, so this tells it that these processes have GPUs.
"""

import os
import sys
from pathlib import Path

from accelerate.state import PartialState
from accelerate.utils import DistributedType
from rich.console import Console

from talkconv.training import fit as room
from talkconv.training.request import Request
from talkconv.training.train_run import train_run

told = room.arguments


def as_if_on_gpus(*args):
    made = told(*args)
    PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
    return made


if __name__ == "__main__":
    room.arguments = as_if_on_gpus
    room._check_machine = lambda recipe: None
    recipe, data, out, *overrides = sys.argv[1:]
    request = Request(recipe, overrides, Path(data), Path(out), resume=True)
    train_run(request, Console(quiet=os.environ["RANK"] != "0"))
