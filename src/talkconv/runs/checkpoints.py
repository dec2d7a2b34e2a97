"""Checkpoints. Each is complete or absent, even if the process is killed or the disk is full."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from talkconv.data.position import Position
from talkconv.files import (
    next_folder,
    recover,
    remove_folder,
    replace_folder,
    unfinished_name,
)

CHECKPOINTS = "checkpoints"
POSITION = "position.json"
STATE = "trainer_state.json"
# the files of a checkpoint that only the training needs
_NOT_OF_THE_NETWORK = (POSITION, STATE, "optimizer.*", "scheduler.pt", "scaler.pt", "*_fsdp*")
_PREFIX = "checkpoint-"


class NotSaved(OSError):
    """A checkpoint could not be written, and nothing of it remains."""


def checkpoints_of(run: Path) -> list[Path]:
    """Return the complete checkpoints of a run, the oldest first.

    >>> [path.name for path in checkpoints_of(Path("runs/toy"))]  # doctest: +SKIP
    ['checkpoint-300', 'checkpoint-600']
    """
    found = (run / CHECKPOINTS).glob(f"{_PREFIX}*")
    return sorted((path for path in found if path.is_dir()), key=step_of)


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix(_PREFIX))


def checkpoint_path(run: Path, step: int) -> Path:
    return run / CHECKPOINTS / f"{_PREFIX}{step}"


@contextlib.contextmanager
def whole(final: Path, *, writes: bool, wait: Callable[[], object]) -> Iterator[Path]:
    """Yield a folder to write into. It is renamed to `final` at the end, or removed after an error.

    All processes of a run enter together: one of them `writes`, and all `wait` for each other.
    """
    unfinished = unfinished_name(final)
    if writes:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
    wait()
    try:
        yield unfinished
        wait()
        if writes:
            replace_folder(unfinished, final)
    except Exception as error:
        raise _not_saved(final, error) from error
    finally:
        if writes:
            shutil.rmtree(unfinished, ignore_errors=True)
    wait()


def staging_folder(run: Path) -> Path:
    """Return the folder in which checkpoints are written until they are complete."""
    return unfinished_name(run / CHECKPOINTS)


def staged_checkpoint(run: Path, step: int) -> Path:
    """Return the folder in which the checkpoint of a step is written until it is complete."""
    return staging_folder(run) / checkpoint_path(run, step).name


def finish_checkpoint(run: Path, step: int) -> Path:
    """Move a checkpoint from the staging folder to its place among the complete ones."""
    final = checkpoint_path(run, step)
    final.parent.mkdir(exist_ok=True)
    replace_folder(staged_checkpoint(run, step), final)
    return final


@contextlib.contextmanager
def staging(run: Path, *, writes: bool) -> Iterator[None]:
    """Remove the staging folder at the end.

    An error while a checkpoint is in it becomes NotSaved. All processes of a run enter together,
    and one of them `writes`.
    """
    try:
        yield
    except Exception as error:
        begun = [step_of(path) for path in staging_folder(run).glob(f"{_PREFIX}*")]
        if begun:
            raise _not_saved(checkpoint_path(run, max(begun)), error) from error
        raise
    finally:
        if writes:
            shutil.rmtree(staging_folder(run), ignore_errors=True)


def recover_run(run: Path) -> None:
    """Remove the incomplete files that a killed process left in a run."""
    for parent in (run, run / CHECKPOINTS):
        recover(parent)


def keep_last(run: Path, keep: int) -> None:
    """Remove all checkpoints except the last `keep`."""
    for checkpoint in checkpoints_of(run)[:-keep]:
        remove_folder(checkpoint)


def publish(checkpoint: Path, folder: Path) -> None:
    """Make `folder` the network of a checkpoint. Files are linked if the disk allows it."""
    ignore = shutil.ignore_patterns(*_NOT_OF_THE_NETWORK)
    with next_folder(folder) as new:
        shutil.copytree(checkpoint, new, copy_function=_link, ignore=ignore, dirs_exist_ok=True)


def write_position(checkpoint: Path, position: Position) -> None:
    (checkpoint / POSITION).write_text(json.dumps(position._asdict()) + "\n", encoding="utf-8")


def read_position(checkpoint: Path) -> Position:
    """Read the position in the stream of batches at which a checkpoint was made."""
    path = checkpoint / POSITION
    try:
        return Position(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must hold a position in the data: {error}. Remove {checkpoint}, and training "
            "goes on from the checkpoint before it"
        ) from error


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _not_saved(final: Path, error: Exception) -> NotSaved:
    """Return an error that says how much space is left, because not all libraries report it."""
    free = shutil.disk_usage(final.parent if final.parent.exists() else final.parents[1]).free
    return NotSaved(
        f"{final} could not be written ({error}); the disk has {free / 1e6:.0f} MB left. "
        "No incomplete files remain"
    )
