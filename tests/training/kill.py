"""Kills a run at random moments and lets it go on, until it ends. Run by test_trainer.py.

A separate process imports everything once and forks, because starting Python ten times would take
longer than the ten runs.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import torch
from rich.console import Console
from transformers.utils.logging import disable_progress_bar

from talkconv.runs.checkpoints import staging_folder
from talkconv.training.record import Record
from talkconv.training.request import Request
from talkconv.training.train_run import train_run


def start(request: Request, began: int) -> int:
    """Fork a process that trains and writes a byte to `began` before its first step."""
    child = os.fork()
    if child:
        return child
    code = 1
    opened = Record.open
    try:

        def open_and_tell(self, step):
            opened(self, step)
            os.write(began, b"x")

        Record.open = open_and_tell
        torch.save = slowly
        with (Path(request.out).parent / f"{request.out.name}.txt").open("a") as output:
            code = 0 if train_run(request, Console(file=output)).finished else 2
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def slowly(*args, save=torch.save) -> None:
    """Write slowly, so that a kill can happen while half of the checkpoint is written."""
    save(*args)
    time.sleep(0.02)


def finish(child: int) -> None:
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "the run must end by itself"


def half_written(run: Path) -> list[str]:
    return [path.name for path in staging_folder(run).glob("checkpoint-*")]


def wait_for_half_a_checkpoint(run: Path) -> None:
    """Wait until half a checkpoint is written, so that one kill surely happens there."""
    deadline = time.monotonic() + 60
    while not half_written(run) and time.monotonic() < deadline:
        time.sleep(0.001)


def main(folder: Path, kills: int, seed: int) -> None:
    request = Request(str(folder / "tiny.toml"), data=folder / "data", out=folder / "whole")
    disable_progress_bar()
    ready, began = os.pipe()
    child = start(request, began)
    os.read(ready, 1)
    started = time.monotonic()
    finish(child)
    took = time.monotonic() - started

    request = Request(request.recipe, data=request.data, out=folder / "killed", resume=True)
    moments = random.Random(seed)
    struck = []
    while len(struck) < kills:
        child = start(request, began)
        os.read(ready, 1)
        if struck:
            # half of the run passes between all kills, so that it does not end before the last one
            time.sleep(moments.uniform(0, took / kills))
        else:
            wait_for_half_a_checkpoint(request.out)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            # the run ended before the kill; it is started once more and ends at once
            break
        struck.append({"half_written": half_written(request.out)})
    finish(start(request, began))
    print(json.dumps(struck))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
