"""The stages of preparation, each done once: read, divide, learn the vocabulary, encode.

The files of a stage in the work folder are complete or absent, so that an interrupted preparation
continues with them.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy
from rich.progress import Progress
from tokenizers import Tokenizer

from talkconv.conventions import LANGUAGE_MODELLING
from talkconv.data import encoding, repeats, words
from talkconv.data.chunks import RAW, card_of, columns_of, read_chunk, read_json
from talkconv.data.corpus import Corpus, Row, Split, in_order
from talkconv.data.data_settings import RAW_TOKENIZERS, DataSettings
from talkconv.data.lines import Reading
from talkconv.data.segmentation import read_codes
from talkconv.data.tokenizer import make_tokenizer
from talkconv.data.vocabulary import bpe_backend, byte_backend, unigram_backend, word_backend
from talkconv.data.worker_pool import WorkerPool
from talkconv.files import new_folder, write_json

# One process tokenizes a chunk of this size in a second or two.
_ROWS = 10_000
_CHARACTERS = 4_000_000
# A split has at most so many files, because each is an open file for its readers.
_SHARDS = 128
# Only one of so many training rows is checked for changes, because all would take too long.
_CHECK_EVERY = 20
_Task = TypeVar("_Task")

# The chunks of each split, by its name.
Chunks = dict[str, list[Path]]


class Stages:
    """The stages of preparation, which work in one folder."""

    def __init__(
        self,
        work: Path,
        task: str,
        settings: DataSettings,
        pool: WorkerPool,
        progress: Progress,
        codes: Path | None = None,
    ) -> None:
        self.work, self.task, self.settings, self.codes = work, task, settings, codes
        self.pool, self.progress = pool, progress

    def read(self, corpus: Corpus) -> tuple[Chunks, dict[str, int]]:
        """Write tokenized and cleaned chunks, and return them with notes on corrections."""
        done = self.work / "read.json"
        if not done.exists():
            reading = Reading()
            chunks = {name: self._read(name, corpus, reading) for name in corpus.splits}
            names = {name: [path.name for path in paths] for name, paths in chunks.items()}
            write_json(done, dict(chunks=names, notes=reading.notes))
        record = read_json(done)
        folder = self.work / "words"
        return (
            {name: [folder / path for path in paths] for name, paths in record["chunks"].items()},
            record["notes"],
        )

    def _read(self, name: str, corpus: Corpus, reading: Reading) -> list[Path]:
        split = corpus.splits[name]
        folder = self.work / "words"
        folder.mkdir(exist_ok=True)
        size = sum(path.stat().st_size for path in split.files)
        bar = self.progress.add_task(f"{name}: words", total=size or None)
        reading.advance = lambda read: self.progress.advance(bar, read)
        train = name == "train"
        paths: list[Path] = []

        def tasks() -> Iterator[words.RawChunk]:
            for number, rows in enumerate(_chunked(self._checked(split, reading))):
                paths.append(folder / f"{name}-{number:05d}.arrow")
                if not card_of(paths[-1]).exists():
                    yield words.RawChunk(
                        paths[-1],
                        rows,
                        clean=train and len(rows[0]) == 2,
                        keep_raw=not train or corpus.valid_every is not None,
                        settings=self.settings,
                        codes=self.codes,
                        check_every=_CHECK_EVERY if train else 1,
                    )

        for _ in self.pool.run(words.tokenize_chunk, tasks()):
            pass
        self.progress.update(bar, total=size or 1, completed=size or 1)
        if not paths:
            raise ValueError(f"the split {name} must hold text, and its files have none")
        return paths

    def _checked(self, split: Split, reading: Reading) -> Iterator[Row]:
        wanted = len(columns_of(self.task))
        for row in split.rows(reading):
            if len(row) != wanted:
                has = "pairs" if len(row) == 2 else "running text"
                needs = "pairs" if wanted == 2 else "running text"
                raise ValueError(
                    f"the task {self.task} needs {needs}, and the corpus {self.settings.corpus} "
                    f"holds {has}: take a recipe for it"
                )
            yield row

    def divide(self, chunks: Chunks, every: int) -> Chunks:
        """Move every `every`-th training pair that cleaning has left to validation."""
        folder = self.work / "divided"
        folder.mkdir(exist_ok=True)
        tasks, before = [], 0
        for path in chunks["train"]:
            valid = folder / path.name.replace("train", "valid")
            tasks.append(words.Division(path, folder / path.name, valid, before, every))
            before += read_json(card_of(path))["kept"]
        todo = [task for task in tasks if not card_of(task.valid).exists()]
        self._run("valid: hold out", words.divide_chunk, todo)
        divided = dict(train=[t.train for t in tasks], valid=[t.valid for t in tasks])
        return {name: (chunks | divided)[name] for name in in_order(chunks | divided)}

    def count_repeats(self, chunks: Chunks) -> dict[str, dict[str, int]]:
        """Count the rows that occur more than once, within a split or in two of them."""
        hashes = {}
        for name, paths in chunks.items():
            found = self._results(f"{name}: repeats", repeats.row_hashes, paths)
            hashes[name] = numpy.concatenate([numpy.empty(0, numpy.uint64), *found])
        return repeats.count_repeats(hashes)

    def learn(self, train: Sequence[Path]) -> Path:
        """Learn the vocabulary from the training text, and return the folder of its tokenizer."""
        folder = self.work / "whole" / "tokenizer"
        if folder.exists():
            return folder
        backend = self._backend(train)
        codes = None if self.codes is None else read_codes(self.codes)
        open_ended = self.task == LANGUAGE_MODELLING
        with new_folder(folder) as unfinished:
            tokenizer = make_tokenizer(backend, self.settings, codes, open_ended=open_ended)
            tokenizer.save_pretrained(unfinished)
        return folder

    def _backend(self, train: Sequence[Path]) -> Tokenizer:
        settings = self.settings
        if not sum(read_json(card_of(path))["kept"] for path in train):
            raise ValueError("no training text is left after cleaning: relax max_length, max_ratio")
        size, rare = settings.vocabulary, settings.min_frequency
        if settings.tokenizer in RAW_TOKENIZERS:
            assert size is not None
            learn = byte_backend if settings.tokenizer == "bytes" else unigram_backend
            with self._waiting("vocabulary: learn"):
                return learn(words.texts_of(train), size)
        counts: Counter[str] = Counter()
        for found in self._results("vocabulary: count", words.count_words, train):
            counts.update(found)
        with self._waiting("vocabulary: learn"):
            return word_backend(counts, rare) if size is None else bpe_backend(counts, size, rare)

    @contextlib.contextmanager
    def _waiting(self, label: str) -> Iterator[None]:
        """Show a bar for work whose length is not known."""
        bar = self.progress.add_task(label, total=None)
        yield
        self.progress.update(bar, total=1, completed=1)

    def encode(self, name: str, paths: Sequence[Path], tokenizer: Path) -> dict[str, Any]:
        """Write shards of ids, and return what was counted and dropped."""
        running = len(columns_of(self.task)) == 1
        whole = self.work / "whole" / name
        folder = self.work / "ids" / name if running else whole
        for needed in (folder, whole):
            needed.mkdir(parents=True, exist_ok=True)
        end = "npy" if running else "arrow"
        tasks = [
            encoding.WordChunks(
                group,
                folder / f"{number:05d}.{end}",
                tokenizer / "tokenizer.json",
                clean=name == "train",
                settings=self.settings,
            )
            for number, group in enumerate(_grouped(paths, _SHARDS))
        ]
        todo = [task for task in tasks if not card_of(task.shard).exists()]
        function = encoding.encode_text if running else encoding.encode_pairs
        self._run(f"{name}: ids", function, todo)
        counts: Counter[str] = Counter()
        dropped: Counter[str] = Counter()
        for task in tasks:
            card = read_json(card_of(task.shard))
            counts.update(card["counts"])
            dropped.update(card.get("dropped", {}))
        if running:
            shards = [task.shard for task in tasks]
            block = self.settings.block
            counts["rows"] = encoding.write_blocks(shards, whole / "00000.arrow", block)
        return dict(counts=counts, dropped=dropped)

    def write_texts(self, name: str, paths: Sequence[Path]) -> None:
        """Write the raw text of a split, one row on each line, in the order of its ids."""
        folder = self.work / "whole" / "text"
        folder.mkdir(parents=True, exist_ok=True)
        for column in columns_of(self.task):
            end = "txt" if column == "text" else column
            with (folder / f"{name}.{end}").open("w", encoding="utf-8", newline="\n") as file:
                for path in paths:
                    lines = read_chunk(path)[RAW.format(column)].to_pylist()
                    file.writelines(f"{line}\n" for line in lines)

    def _run(self, label: str, function: Callable[[_Task], None], tasks: Sequence[_Task]) -> None:
        for _ in self._results(label, function, tasks):
            pass

    def _results(
        self, label: str, function: Callable[[_Task], Any], tasks: Sequence[_Task]
    ) -> Iterator[Any]:
        if not tasks:
            return
        bar = self.progress.add_task(label, total=len(tasks))
        for result in self.pool.run(function, tasks):
            self.progress.advance(bar)
            yield result


def _chunked(rows: Iterable[Row]) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    characters = 0
    for row in rows:
        chunk.append(row)
        characters += sum(map(len, row))
        if len(chunk) == _ROWS or characters >= _CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _grouped(paths: Sequence[Path], most: int) -> Iterator[Sequence[Path]]:
    """Split paths into at most `most` groups of neighbours, of equal size except the last."""
    size = -(-len(paths) // most)
    return (paths[start : start + size] for start in range(0, len(paths), size))
