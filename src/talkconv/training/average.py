"""`talkconv average`: one network whose weights are the mean of several checkpoints'."""

import json
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from talkconv.files import next_folder, write_json
from talkconv.messages import one_message
from talkconv.runs.card import AVERAGED, BEST, LAST, RunCard
from talkconv.runs.checkpoints import checkpoints_of, step_of
from talkconv.runs.model_card import README

WEIGHTS = "model.safetensors"
SOURCES = "averaged.json"


def average(run: Path, last: int = 10) -> Path:
    """Write the mean of the run's last checkpoints to RUN/averaged, and replace an older one."""
    RunCard.read(run)
    return write_average(run, last_checkpoints(run, last), run / AVERAGED)


def last_checkpoints(run: Path, count: int) -> list[Path]:
    """Return the newest `count` checkpoints of a run, the oldest of them first."""
    found = checkpoints_of(run)
    if not 1 <= count <= len(found):
        steps = ", ".join(str(step_of(path)) for path in found) or "none"
        raise ValueError(
            f"{run} has {len(found)} checkpoints (steps: {steps}), so {count} cannot be "
            "averaged. training.keep in the recipe says how many a run keeps"
        )
    return found[-count:]


def write_average(run: Path, checkpoints: Sequence[Path], out: Path) -> Path:
    """Write the mean of checkpoints as the folder of a network.

    If writing fails, the folder that was there before remains.
    """
    with next_folder(out) as unfinished:
        # Copy config, generation_config and tokenizer. The weights are new, and the scores in the
        # README belong to the other network.
        ignore = shutil.ignore_patterns(WEIGHTS, SOURCES, README)
        shutil.copytree(_model_folder(run), unfinished, ignore=ignore, dirs_exist_ok=True)
        save_file(mean_of(checkpoints), unfinished / WEIGHTS, metadata={"format": "pt"})
        write_json(unfinished / SOURCES, {"checkpoints": [path.name for path in checkpoints]})
    return out


def mean_of(checkpoints: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of each tensor, summed in float64.

    Only one tensor at a time is in memory twice.
    """
    with ExitStack() as stack:
        files = [
            stack.enter_context(safe_open(path / WEIGHTS, framework="pt")) for path in checkpoints
        ]
        names = _common_names(checkpoints, files)
        return {name: _mean(name, checkpoints, files) for name in names}


def _common_names(checkpoints: Sequence[Path], files: Sequence[Any]) -> list[str]:
    names = set(files[0].keys())
    for checkpoint, file in zip(checkpoints, files, strict=True):
        differing = sorted(names ^ set(file.keys()))
        if differing:
            raise ValueError(
                f"{checkpoints[0]} and {checkpoint} must have the same tensors, but only one of "
                f"them has {differing[0]!r}: checkpoints of one network can be averaged"
            )
    return sorted(names)


def _mean(name: str, checkpoints: Sequence[Path], files: Sequence[Any]) -> Tensor:
    first: Tensor = files[0].get_tensor(name)
    # counters and other integers are taken from the newest checkpoint
    if not first.is_floating_point():
        newest: Tensor = files[-1].get_tensor(name)
        return newest
    total = torch.zeros(first.shape, dtype=torch.float64)
    for checkpoint, file in zip(checkpoints, files, strict=True):
        tensor = file.get_tensor(name)
        if tensor.shape != first.shape:
            raise ValueError(
                f"{name} must have one shape in all checkpoints, got {tuple(first.shape)} in "
                f"{checkpoints[0]} and {tuple(tensor.shape)} in {checkpoint}"
            )
        total += tensor
    return (total / len(files)).to(first.dtype)


def _model_folder(run: Path) -> Path:
    for name in (BEST, LAST):
        if (run / name / "config.json").exists():
            return run / name
    raise ValueError(f"{run} has no network best or last yet: wait for the first validation")


def average_command(run: Path, last: int) -> None:
    """Average checkpoints for the command line."""
    with one_message("not averaged"):
        out = average(run, last)
        sources = json.loads((out / SOURCES).read_text())["checkpoints"]
        Console().print(
            f"{out}: the mean of {len(sources)} checkpoints, {sources[0]} to {sources[-1]}. "
            f"Use it with --model {AVERAGED}",
            highlight=False,
            soft_wrap=True,
        )
