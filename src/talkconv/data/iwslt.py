"""IWSLT 2014: tagged text for training, xml for the development and test sets.

Every 23rd of the cleaned training pairs is kept for validation. The test set consists of all five
published development and test sets. The paper and its predecessors use this split.
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from talkconv.data.corpus import Corpus, Row, Split, missing
from talkconv.data.data_settings import DataSettings
from talkconv.data.lines import Reading, aligned, find_below, read_lines
from talkconv.data.markup import read_segments

_PAIR = "de-en"
_TESTS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
_VALID_EVERY = 23
# These lines are facts about a talk and not its text.
_ABOUT = re.compile(r"\s*</?(url|talkid|keywords|speaker|reviewer|translator|doc)\b")
# These tags enclose text, which is kept.
_TAGS = re.compile(r"</?(title|description)>")


def iwslt14(raw: Path, settings: DataSettings) -> Corpus:
    langs = (settings.source_lang, settings.target_lang)
    if sorted(langs) != ["de", "en"]:
        raise ValueError(f"iwslt14 has German and English, got {langs[0]} and {langs[1]}")
    wanted = [[f"train.tags.{_PAIR}.{lang}" for lang in langs]]
    wanted += [[f"IWSLT14.{name}.{_PAIR}.{lang}.xml" for lang in langs] for name in _TESTS]
    found = {name: find_below(raw, name) for pair in wanted for name in pair}
    absent = [name for name, path in found.items() if path is None]
    if absent:
        raise missing(raw, absent, f"Unpack the archive {_PAIR}.tgz of IWSLT 2014 there.")
    train, *tests = [[path for name in pair if (path := found[name])] for pair in wanted]

    def train_rows(reading: Reading) -> Iterator[Row]:
        return aligned([_talks(path, reading) for path in train], train)

    def test_rows(reading: Reading) -> Iterator[Row]:
        for pair in tests:
            yield from aligned([read_segments(path, reading) for path in pair], pair)

    return Corpus(
        {"train": Split(train, train_rows), "test": Split([*chain(*tests)], test_rows)},
        valid_every=_VALID_EVERY,
    )


def _talks(path: Path, reading: Reading) -> Iterator[str]:
    for line in read_lines(path, reading):
        if not _ABOUT.match(line):
            yield _TAGS.sub("", line).strip()
