"""log.jsonl, the log of a run: a line for each report of a training or validation."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from talkconv.files import write_text

LOG = "log.jsonl"


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's log, without a last line that is incomplete."""
    path = folder / LOG
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def append_to_log(folder: Path, step: int, values: Mapping[str, float]) -> None:
    """Write one line about a step at the end of a run's log."""
    with (folder / LOG).open("a", encoding="utf-8") as log:
        log.write(json.dumps({"step": step, **values}) + "\n")


def forget_after(folder: Path, step: int) -> None:
    """Remove the lines about later steps from a run's log, if there is one."""
    path = folder / LOG
    if not path.exists():
        return
    kept = [line for line in read_log(folder) if line["step"] <= step]
    write_text(path, "".join(json.dumps(line) + "\n" for line in kept))
