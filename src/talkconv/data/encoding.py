"""Encodes chunks of words as ids; any process can make a shard from some chunks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy
import pyarrow
from tokenizers import Tokenizer

from talkconv.data.chunks import PAIR, card_of, read_chunk, shard_writer
from talkconv.data.cleaning import why_dropped
from talkconv.data.data_settings import DataSettings
from talkconv.data.specials import EOS, SPECIALS, UNK
from talkconv.files import whole_file, write_json

IDS = pyarrow.list_(pyarrow.int32())
# So many rows are encoded and written at a time.
_BATCH = 5_000
_UNKNOWN, _END = SPECIALS.index(UNK), SPECIALS.index(EOS)


@dataclass(frozen=True)
class WordChunks:
    """Tokenized chunks that become one shard; pairs to train on are cleaned."""

    paths: Sequence[Path]
    shard: Path
    tokenizer: Path
    clean: bool
    settings: DataSettings


def encode_pairs(chunks: WordChunks) -> None:
    """Write the ids of pairs to a shard, cut and cleaned by length, with </s> at each end."""
    settings = chunks.settings
    limits = (settings.max_source_tokens, settings.max_target_tokens)
    clean = chunks.clean and settings.length_in == "subwords"
    counts: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    schema = pyarrow.schema([(name, IDS) for name in PAIR])
    with shard_writer(chunks.shard, schema) as writer:
        for batch in _batches(chunks.paths):
            columns: dict[str, list[list[int]]] = {name: [] for name in PAIR}
            texts = [batch[name].to_pylist() for name in PAIR]
            counts["given_unknown"] += _given_unknown(chain(*texts), settings)
            sides = [_encode(chunks.tokenizer, side) for side in texts]
            for pair in zip(*sides, strict=True):
                # The </s> is not counted as a subword.
                why = why_dropped([len(ids) - 1 for ids in pair], settings) if clean else None
                if why:
                    dropped[why] += 1
                    continue
                for name, ids, limit in zip(PAIR, pair, limits, strict=True):
                    kept = _cut(ids, limit)
                    counts[f"{name}_tokens"] += len(kept)
                    counts["unknown"] += kept.count(_UNKNOWN)
                    counts[f"{name}_cut"] += len(kept) < len(ids)
                    columns[name].append(kept)
            arrays = [pyarrow.array(column, IDS) for column in columns.values()]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))
            counts["rows"] += len(arrays[0])
    write_json(card_of(chunks.shard), dict(counts=counts, dropped=dropped))


def encode_text(chunks: WordChunks) -> None:
    """Write the ids of all lines to one array, with </s> at the end of each line."""
    counts: Counter[str] = Counter()

    def lines() -> Iterator[Sequence[int]]:
        for batch in _batches(chunks.paths):
            texts = batch["text"].to_pylist()
            counts["given_unknown"] += _given_unknown(texts, chunks.settings)
            for ids in _encode(chunks.tokenizer, texts, add_special_tokens=False):
                yield (*ids, _END)

    stream = numpy.fromiter(chain.from_iterable(lines()), numpy.int32)
    with whole_file(chunks.shard) as unfinished, unfinished.open("wb") as file:
        numpy.save(file, stream)
    counts.update(tokens=len(stream), unknown=int((stream == _UNKNOWN).sum()))
    write_json(card_of(chunks.shard), dict(counts=counts))


def write_blocks(streams: Sequence[Path], shard: Path, block: int) -> int:
    """Join arrays of ids, write them as rows of `block` ids, and return the number of rows.

    The last row may be shorter.
    """
    schema = pyarrow.schema([("tokens", IDS)])
    rows = 0
    left = numpy.zeros(0, numpy.int32)
    with shard_writer(shard, schema) as writer:
        for last, path in [(path is streams[-1], path) for path in streams]:
            stream = numpy.concatenate([left, numpy.load(path)])
            end = len(stream) if last else len(stream) - len(stream) % block
            starts = numpy.append(numpy.arange(0, end, block), end).astype(numpy.int32)
            array = pyarrow.ListArray.from_arrays(starts, stream[:end])
            writer.write_batch(pyarrow.record_batch([array], schema=schema))
            left = stream[end:]
            rows += len(array)
    return rows


def _batches(paths: Sequence[Path]) -> Iterator[Any]:
    for path in paths:
        yield from read_chunk(path).to_batches(max_chunksize=_BATCH)


def _encode(
    tokenizer: Path, texts: list[str], *, add_special_tokens: bool = True
) -> list[list[int]]:
    found = _backend(tokenizer).encode_batch_fast(texts, add_special_tokens=add_special_tokens)
    return [encoding.ids for encoding in found]


def _given_unknown(texts: Iterable[str], settings: DataSettings) -> int:
    """Count the words that are <unk> in the text already, which no vocabulary can avoid."""
    # Subwords spell <unk> like any other word.
    if settings.vocabulary is not None:
        return 0
    return sum(text.split().count(UNK) for text in texts)


def _cut(ids: list[int], limit: int | None) -> list[int]:
    """Return at most `limit` ids and the </s> after them."""
    return ids if limit is None or len(ids) <= limit + 1 else [*ids[:limit], ids[-1]]


@lru_cache(maxsize=1)
def _backend(path: Path) -> Tokenizer:
    backend = Tokenizer.from_file(str(path))
    # The name of a special entry within a text is text. The file cannot save this setting.
    backend.encode_special_tokens = True
    return backend
