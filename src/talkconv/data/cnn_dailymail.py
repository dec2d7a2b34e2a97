"""CNN/DailyMail: story files with lists of addresses for the splits, or the parquet files."""

from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path

import pyarrow.parquet

from talkconv.data.corpus import Corpus, Row, Split, missing
from talkconv.data.data_settings import DataSettings
from talkconv.data.lines import Reading, find_below, read_lines

_LISTS = {"train": "all_train.txt", "valid": "all_val.txt", "test": "all_test.txt"}
_PARQUET = {"train": "train", "valid": "validation", "test": "test"}
_HIGHLIGHT = "@highlight"
# A line with another end lost its full stop when it was published.
_ENDS = (".", "!", "?", "'", "`", '"', "’", "”", ")")
NO_STORY = "addresses in the lists without a story file"


def cnn_dailymail(raw: Path, settings: DataSettings) -> Corpus:
    parquet = {split: sorted(raw.rglob(f"{name}-*.parquet")) for split, name in _PARQUET.items()}
    if all(parquet.values()):
        return Corpus({split: _parquet_split(files) for split, files in parquet.items()})
    lists = {split: find_below(raw, name) for split, name in _LISTS.items()}
    folders = sorted(path for path in raw.rglob("stories") if path.is_dir())
    absent = [_LISTS[split] for split, path in lists.items() if path is None]
    absent += [] if folders else ["cnn/stories/*.story", "dailymail/stories/*.story"]
    if absent:
        cure = "Or give a folder with train-, validation- and test-*.parquet."
        raise missing(raw, absent, cure)
    stories = {path.name: path for folder in folders for path in folder.glob("*.story")}
    return Corpus({s: _story_split(path, stories) for s, path in lists.items() if path})


def _story_split(addresses: Path, stories: dict[str, Path]) -> Split:
    def rows(reading: Reading) -> Iterator[Row]:
        for address in read_lines(addresses, reading):
            # The name of a story file is the hash of its address.
            name = f"{sha1(address.strip().encode()).hexdigest()}.story"
            if name in stories:
                yield _story(stories[name], reading)
            else:
                reading.notes[NO_STORY] += 1

    return Split([addresses], rows)


def _story(path: Path, reading: Reading) -> Row:
    """Return the article and its highlights, each on one line."""
    parts: tuple[list[str], list[str]] = ([], [])
    summary = False
    for line in read_lines(path, Reading(notes=reading.notes)):
        text = line.strip()
        if text == _HIGHLIGHT:
            summary = True
        elif text:
            parts[summary].append(text if text.endswith(_ENDS) else f"{text}.")
    return " ".join(parts[0]), " ".join(parts[1])


def _parquet_split(files: list[Path]) -> Split:
    def rows(reading: Reading) -> Iterator[Row]:
        for path in files:
            try:
                table = pyarrow.parquet.ParquetFile(path)
                for batch in table.iter_batches(1_000, columns=["article", "highlights"]):
                    for row in batch.to_pylist():
                        yield tuple(" ".join(row[key].split()) for key in ("article", "highlights"))
            except (pyarrow.ArrowException, KeyError) as error:
                raise ValueError(
                    f"{path} must be parquet with the columns article and highlights, got {error}"
                ) from error
            reading.advance(path.stat().st_size)

    return Split(files, rows)
