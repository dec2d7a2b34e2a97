"""Checkpoints that are complete or absent, whenever the process dies and the disk fills up."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from talkconv.data.batching import Position

CHECKPOINTS = "checkpoints"
POSITION = "position.json"
STATE = "trainer_state.json"
# what a network needs to be loaded; the rest of a checkpoint is for training to go on
_NOT_OF_THE_NETWORK = (POSITION, STATE, "optimizer.*", "scheduler.pt", "scaler.pt", "*_fsdp*")
_PREFIX = "checkpoint-"


class NotSaved(OSError):
    """A checkpoint could not be written, and nothing of it remains."""


def checkpoints_of(run: Path) -> list[Path]:
    """The complete checkpoints of a run, the oldest first.

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
    """A folder to write into, which becomes `final` when all is on disk, or vanishes.

    All processes of a run come here together: one of them `writes`, all `wait` for each other.
    """
    unfinished = final.with_name(f".{final.name}.unfinished")
    if writes:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
    wait()
    try:
        yield unfinished
        wait()
        if writes:
            _sync(unfinished)
            replace(unfinished, final)
    except Exception as error:
        # libraries say that the disk is full each in its own way; what they had begun takes room
        free = shutil.disk_usage(final.parent).free
        raise NotSaved(
            f"{final} could not be written ({error}); the disk has {free / 1e6:.0f} MB left. "
            "Nothing half-written remains"
        ) from error
    finally:
        if writes:
            shutil.rmtree(unfinished, ignore_errors=True)
    wait()


def replace(new: Path, folder: Path) -> None:
    """Put `new` in the place of `folder`. No system exchanges two folders at once everywhere:
    recover() undoes what a kill between the two renames leaves."""
    old = _old(folder)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    new.rename(folder)
    _sync_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def recover(run: Path) -> None:
    """Take away what a killed process left half-written."""
    for parent in (run, run / CHECKPOINTS):
        for old in parent.glob(".*.old"):
            folder = parent / old.name[1:].removesuffix(".old")
            if not folder.exists():
                old.rename(folder)
        for left in (*parent.glob(".*.old"), *parent.glob(".*.unfinished")):
            shutil.rmtree(left, ignore_errors=True)


def keep_last(run: Path, keep: int) -> None:
    """Remove all checkpoints but the last ones."""
    for checkpoint in checkpoints_of(run)[:-keep]:
        # under another name first: a folder that is half removed must not look like a checkpoint
        doomed = checkpoint.with_name(f".{checkpoint.name}.unfinished")
        checkpoint.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def publish(checkpoint: Path, folder: Path) -> None:
    """Make `folder` the network of a checkpoint, without copying where the disk can link."""
    new = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(new, ignore_errors=True)
    ignore = shutil.ignore_patterns(*_NOT_OF_THE_NETWORK)
    shutil.copytree(checkpoint, new, copy_function=_link, ignore=ignore)
    replace(new, folder)


def write_position(checkpoint: Path, position: Position) -> None:
    (checkpoint / POSITION).write_text(json.dumps(position._asdict()) + "\n", encoding="utf-8")


def read_position(checkpoint: Path) -> Position:
    """The place in the stream of batches where a checkpoint was made."""
    path = checkpoint / POSITION
    try:
        return Position(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must hold a place in the data: {error}. Remove {checkpoint}, and training "
            "goes on from the checkpoint before it"
        ) from error


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _sync(folder: Path) -> None:
    """Wait until everything in `folder` is on disk: only then may its name be the final one."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    # Windows cannot open folders, and needs no such thing
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
