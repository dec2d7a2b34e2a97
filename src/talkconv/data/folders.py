"""Folders and files that are complete or absent."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `out` at the end, or vanishes when anything fails."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} must not exist yet, or be an empty folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        yield unfinished
        # mkdtemp makes folders that their owner alone can read
        unfinished.chmod(0o755)
        unfinished.replace(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextlib.contextmanager
def whole_file(out: Path) -> Iterator[Path]:
    """A path to write to, which becomes `out` at the end, or vanishes when anything fails."""
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        yield unfinished
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
