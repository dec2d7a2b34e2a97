"""Tokenizes raw rows; any process can work on one chunk of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy
import pyarrow

from talkconv.data.chunks import PAIR, RAW, TEXT, read_chunk, write_chunk
from talkconv.data.cleaning import why_dropped, why_dropped_raw
from talkconv.data.corpus import Row
from talkconv.data.data_settings import DataSettings
from talkconv.data.segmentation import read_codes
from talkconv.data.text_rules import TextRules, make_rules

_EXAMPLES = 3


@dataclass(frozen=True)
class RawChunk:
    """Rows to tokenize. Training pairs are cleaned, and all other rows are kept."""

    path: Path
    rows: Sequence[Row]
    clean: bool
    keep_raw: bool
    settings: DataSettings
    codes: Path | None = None
    # One of so many rows, on average, is checked for changes by the way to subwords and back.
    check_every: int = 1


def tokenize_chunk(chunk: RawChunk) -> None:
    """Write the words of raw rows, between single spaces."""
    names = PAIR if len(chunk.rows[0]) == 2 else TEXT
    columns: dict[str, list[str]] = {name: [] for name in names}
    if chunk.keep_raw:
        columns |= {RAW.format(name): [] for name in names}
    dropped: Counter[str] = Counter()
    round_trip = RoundTrip()
    # Running text is a source without a target.
    langs = (chunk.settings.source_lang, chunk.settings.target_lang)[: len(names)]
    rules = [_rules(chunk.settings, lang, chunk.codes) for lang in langs]
    for row in chunk.rows:
        why = why_dropped_raw(row) if chunk.clean else None
        words = [] if why else [each.subwords(side) for each, side in zip(rules, row, strict=True)]
        if chunk.clean and not why and chunk.settings.length_in == "words":
            why = why_dropped([len(side.split()) for side in words], chunk.settings)
        if why:
            dropped[why] += 1
            continue
        # A text's checksum decides: every 20th row would miss a placeholder in each 2nd of 10 rows.
        if crc32(row[-1].encode(errors="replace")) % chunk.check_every == 0:
            # Outputs are in the language of the target, so only its rules matter here.
            round_trip.check(row[-1], words[-1], rules[-1])
        for name, each, raw, side in zip(names, rules, row, words, strict=True):
            columns[name].append(side)
            if chunk.keep_raw:
                # The tokenizer reads sources; outputs are compared with all other text.
                kept = raw if name == "source" else each.reference(raw)
                columns[RAW.format(name)].append(kept)
    card = dict(read=len(chunk.rows), dropped=dropped, round_trip=asdict(round_trip))
    write_chunk(chunk.path, columns, card)


@dataclass
class RoundTrip:
    """Counts the texts that change when they are split into subwords and joined again.

    Spaces are not compared, and neither is what the recipe changes on purpose, such as letter case.
    """

    checked: int = 0
    changed: int = 0
    # Some changed texts, each with the text that came back.
    examples: list[tuple[str, str]] = field(default_factory=list)

    def check(self, text: str, subwords: str, rules: TextRules) -> None:
        plain, back = rules.plain(text), rules.text(subwords)
        self.checked += 1
        if back.split() != plain.split():
            self.changed += 1
            if len(self.examples) < _EXAMPLES:
                self.examples.append((plain, back))

    def add(self, other: "RoundTrip") -> None:
        self.checked += other.checked
        self.changed += other.changed
        self.examples = [*self.examples, *other.examples][:_EXAMPLES]


@cache
def _rules(settings: DataSettings, lang: str, codes: Path | None) -> TextRules:
    merges = None if codes is None else read_codes(codes)
    return make_rules(settings.tokenizer, lang, settings.as_dict(), merges)


@dataclass(frozen=True)
class Division:
    """A chunk of which every `every`-th row is for validation; `before` rows precede it."""

    path: Path
    train: Path
    valid: Path
    before: int
    every: int


def divide_chunk(division: Division) -> None:
    table = read_chunk(division.path)
    places = division.before + 1 + numpy.arange(table.num_rows)
    held_out = places % division.every == 0
    for path, mask in ((division.train, ~held_out), (division.valid, held_out)):
        write_chunk(path, table.filter(pyarrow.array(mask)).to_pydict(), {})


def texts_of(paths: Sequence[Path]) -> Iterator[str]:
    """Yield every text of some chunks, of both sides."""
    for path in paths:
        table = read_chunk(path)
        for name in PAIR if PAIR[0] in table.column_names else TEXT:
            yield from table[name].to_pylist()


def count_words(path: Path) -> Counter[str]:
    """Count each word of a chunk, on both sides together."""
    counts: Counter[str] = Counter()
    for text in texts_of([path]):
        counts.update(text.split())
    return counts
