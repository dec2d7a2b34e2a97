"""Writes files and folders that are complete or absent, even if the process is killed."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_UNFINISHED, _OLD = ".unfinished", ".old"


@contextlib.contextmanager
def whole_file(out: Path) -> Iterator[Path]:
    """Yield a path to write to. It becomes `out` at the end, or is removed if anything fails."""
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        yield unfinished
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


def write_text(out: Path, text: str) -> None:
    """Write a text file that is complete or absent; its folder is made if necessary."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(out) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def write_json(out: Path, value: Any, indent: int | None = 2) -> None:
    """Write a JSON file that is complete or absent."""
    write_text(out, json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Yield a folder to write into. It becomes `out` at the end, or is removed if anything fails.

    `out` must not exist yet, or be empty.
    """
    check_new(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        yield unfinished
        # mkdtemp makes folders that only their owner can read
        unfinished.chmod(0o755)
        unfinished.replace(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def check_new(out: Path) -> None:
    """Raise a ValueError unless `out` can become a new folder without losing anything."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} must not exist yet, or be an empty folder")


@contextlib.contextmanager
def next_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` at the end, or is removed.

    If the process is killed, recover() clears up.
    """
    unfinished = unfinished_name(folder)
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        replace_folder(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def unfinished_name(folder: Path) -> Path:
    """Return the name under which `folder` is written until it is complete."""
    return folder.with_name(f".{folder.name}{_UNFINISHED}")


def replace_folder(new: Path, folder: Path) -> None:
    """Flush `new` to disk and put it in the place of `folder`.

    Exchanging two folders takes two renames; recover() repairs what a kill between them leaves.
    """
    _flush(new)
    old = folder.with_name(f".{folder.name}{_OLD}")
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    new.rename(folder)
    _flush_entries(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder; if the process is killed meanwhile, recover() removes the rest."""
    doomed = unfinished_name(folder)
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def recover(parent: Path) -> None:
    """Remove what a killed process left unfinished in `parent`, and restore what it had moved."""
    for old in parent.glob(f".*{_OLD}"):
        folder = parent / old.name[1:].removesuffix(_OLD)
        if not folder.exists():
            old.rename(folder)
    for left in (*parent.glob(f".*{_OLD}"), *parent.glob(f".*{_UNFINISHED}")):
        shutil.rmtree(left, ignore_errors=True)


def _flush(folder: Path) -> None:
    """Wait until all files in `folder` are on disk: only then may it get its final name."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    _flush_entries(folder)


def _flush_entries(folder: Path) -> None:
    # Windows cannot open folders, and need not flush them
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
