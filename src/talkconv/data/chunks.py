"""Chunks of rows on disk: an arrow file, and a card of the same name with .json.

The card is written last, so a chunk that has a card is complete.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow

from talkconv.conventions import LANGUAGE_MODELLING
from talkconv.files import whole_file, write_json

PAIR, TEXT = ("source", "target"), ("text",)
# The names of the columns with raw text, which valid and test have, too.
RAW = "raw_{}"

Columns = dict[str, list[str]]


def columns_of(task: str) -> tuple[str, ...]:
    return TEXT if task == LANGUAGE_MODELLING else PAIR


def write_chunk(path: Path, columns: Columns, card: Mapping[str, Any]) -> None:
    arrays = {name: pyarrow.array(rows, pyarrow.string()) for name, rows in columns.items()}
    table = pyarrow.table(arrays)
    with whole_file(path) as unfinished, pyarrow.OSFile(str(unfinished), "wb") as sink:
        writer = pyarrow.ipc.new_file(sink, table.schema)
        writer.write_table(table)
        writer.close()
    write_json(card_of(path), {"kept": table.num_rows, **card}, indent=None)


def read_chunk(path: Path) -> Any:
    """Return a chunk as a pyarrow.Table, which is mapped and not loaded."""
    return pyarrow.ipc.open_file(pyarrow.memory_map(str(path))).read_all()


@contextlib.contextmanager
def shard_writer(path: Path, schema: Any) -> Iterator[Any]:
    """Open a writer of record batches to a file that datasets.Dataset.from_file() can map."""
    with (
        whole_file(path) as unfinished,
        pyarrow.OSFile(str(unfinished), "wb") as sink,
        pyarrow.ipc.new_stream(sink, schema) as writer,
    ):
        yield writer


def card_of(path: Path) -> Path:
    return path.with_suffix(".json")


def read_json(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value
