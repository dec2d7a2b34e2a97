"""Saves the rows of a part one by one, so that an interrupted measurement can go on."""

import json
from pathlib import Path
from typing import Any

from talkconv.bench.part import PART_NAMES, Part
from talkconv.bench.side_by_side import RowResult
from talkconv.files import write_json
from talkconv.machine import describe_machine

# Rows that agree in these facts can be compared and may be in one table.
_SAME = ("processor", "cores", "threads", "torch", "talkconv", "kernel", "commit")


class Store:
    """The JSON file of one part in a folder of results."""

    def __init__(self, folder: Path, part: str, *, quick: bool, fresh: bool = False) -> None:
        self.path = folder / f"{part}.json"
        self._machine = describe_machine()
        self._quick = quick
        self.rows: dict[str, RowResult] = {} if fresh else self._kept()

    def _kept(self) -> dict[str, RowResult]:
        """Return the rows of an earlier run that were measured under the same conditions."""
        if not self.path.exists():
            return {}
        found = read_part(self.path)
        before = found["machine"]
        is_same = found["quick"] == self._quick and all(
            before.get(key) == self._machine[key] for key in _SAME
        )
        rows: dict[str, RowResult] = found["rows"] if is_same else {}
        return rows

    def add(self, key: str, row: RowResult, part: Part) -> None:
        """Save a row. If this fails, the file does not change."""
        self.rows[key] = row
        # keep the order of the table, also if rows of an earlier run were kept
        ordered = {each.key: self.rows[each.key] for each in part.rows if each.key in self.rows}
        write_json(
            self.path,
            {
                "machine": self._machine,
                "quick": self._quick,
                "complete": len(ordered) == len(part.rows),
                "rows": ordered,
            },
            indent=1,
        )


def read_part(path: Path) -> dict[str, Any]:
    """Read the file of a part. Raise a ValueError if it is another file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} must be JSON that `talkconv bench all` wrote: {error}") from error
    if not isinstance(found, dict) or not {"machine", "quick", "rows"} <= found.keys():
        raise ValueError(f"{path} must be a file that `talkconv bench all` wrote")
    return found


def read_folder(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the parts that a folder of results has, by name."""
    paths = {name: folder / f"{name}.json" for name in PART_NAMES}
    found = {name: read_part(path) for name, path in paths.items() if path.exists()}
    if not found:
        raise ValueError(f"{folder} must be a folder that `talkconv bench all` wrote")
    return found
