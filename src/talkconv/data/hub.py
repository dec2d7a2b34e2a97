"""Reads a dataset by its name, through the `datasets` library.

In a recipe: corpus = "datasets:NAME" or "datasets:NAME:CONFIG".
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import datasets

from talkconv.data.corpus import Corpus, Row, Split
from talkconv.data.data_settings import HUB, DataSettings
from talkconv.data.lines import Reading

_NAMES = {"train": ("train",), "valid": ("validation", "valid", "dev"), "test": ("test",)}
# The names of columns that datasets of pairs use.
_PAIRS = (
    ("source", "target"),
    ("source", "summary"),
    ("article", "highlights"),
    ("document", "summary"),
    ("dialogue", "summary"),
    ("text", "summary"),
)


def hub(raw: Path | None, settings: DataSettings) -> Corpus:
    """Open a dataset as a stream: a folder of that name in `raw`, or else from the internet."""
    name, _, config = settings.corpus.removeprefix(HUB).partition(":")
    local = raw / name if raw is not None and (raw / name).exists() else None
    try:
        found = datasets.load_dataset(str(local or name), config or None, streaming=True)
    except Exception as error:
        # The library raises many kinds of errors for unknown names and for network failures.
        raise ValueError(f"{settings.corpus} cannot be loaded: {error}") from error
    splits = {}
    for split, names in _NAMES.items():
        known = next((given for given in names if given in found), None)
        if known:
            splits[split] = _split(found[known], settings)
        elif split != "test":
            raise ValueError(f"{settings.corpus} must have a split {names[0]}, got {list(found)}")
    return Corpus(splits, identity=settings.corpus)


def _split(rows_of: Any, settings: DataSettings) -> Split:
    first = next(iter(rows_of), None)
    if first is None:
        raise ValueError(f"{settings.corpus} must hold rows, and a split is empty")
    columns = _columns(_values(first), settings)

    def rows(reading: Reading) -> Iterator[Row]:
        for row in rows_of:
            values = _values(row)
            if len(columns) == 1:
                yield from ((line,) for line in values["text"].removesuffix("\n").split("\n"))
            else:
                yield tuple(" ".join(values[name].split()) for name in columns)

    return Split([], rows)


def _values(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a row, also if they are one level deeper, under "translation"."""
    nested = row.get("translation")
    return nested if isinstance(nested, Mapping) else row


def _columns(first: Mapping[str, Any], settings: DataSettings) -> tuple[str, ...]:
    """Return the columns of source and target, or the one of running text."""
    langs = (settings.source_lang, settings.target_lang)
    for names in (langs, *_PAIRS):
        if names[0] != names[1] and all(name in first for name in names):
            return names
    if "text" in first:
        return ("text",)
    raise ValueError(
        f"{settings.corpus} must have a column translation, {langs[0]} and {langs[1]}, source and "
        f"target, article and highlights, or text, got {list(first)}"
    )
