import dataclasses
from collections import Counter

import pytest

from talkconv.data.chunks import card_of, read_chunk, read_json, write_chunk
from talkconv.data.cleaning import EMPTY
from talkconv.data.data_settings import DataSettings
from talkconv.data.words import (
    Division,
    RawChunk,
    RoundTrip,
    count_words,
    divide_chunk,
    tokenize_chunk,
)
from tests.data.cases import PAIRS, WORDS

ROWS = [("Ein Hund.", "A dog."), ("", "Nothing"), ("Ja " * 9, "Yes")]
CLEANED = DataSettings(corpus="pairs", source_lang="de", vocabulary=60, max_ratio=3.0)


def test_training_pairs_are_cleaned(tmp_path):
    path = tmp_path / "train-00000.arrow"
    tokenize_chunk(RawChunk(path, ROWS, clean=True, keep_raw=False, settings=CLEANED))
    assert read_chunk(path).to_pydict() == {"source": ["Ein Hund ."], "target": ["A dog ."]}
    dropped = {EMPTY: 1, "one side more than 3.0 times the other": 1}
    card = read_json(card_of(path))
    assert card.pop("round_trip") == {"checked": 1, "changed": 0, "examples": []}
    assert card == {"kept": 1, "read": 3, "dropped": dropped}


def test_others_are_all_kept_with_their_raw_text(tmp_path):
    path = tmp_path / "test-00000.arrow"
    tokenize_chunk(RawChunk(path, ROWS, clean=False, keep_raw=True, settings=CLEANED))
    table = read_chunk(path).to_pydict()
    assert list(zip(table["raw_source"], table["raw_target"], strict=True)) == ROWS
    assert table["source"][1] == ""


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({}, 4),
        ({"protected": ["%[a-z]"]}, 0),
        ({"tokenizer": "bytes", "vocabulary": 300}, 0),
        ({"tokenizer": "unigram", "vocabulary": 300}, 0),
        ({"tokenizer": "none", "vocabulary": None}, 0),
    ],
)
def test_texts_that_do_not_come_back_are_counted(tmp_path, changes, changed):
    settings = dataclasses.replace(CLEANED, lowercase=True, **changes)
    # Moses writes two of these as `% s`; spaces and letter case are no changes
    rows = [("Eins", "One  file"), ("Zwei", "Open %s?"), ("Drei", "%d FILES")] * 2
    path = tmp_path / "0.arrow"
    tokenize_chunk(RawChunk(path, rows, clean=False, keep_raw=False, settings=settings))
    found = RoundTrip(**read_json(card_of(path))["round_trip"])
    assert (found.checked, found.changed) == (6, changed)
    assert found.examples[:1] == ([["open %s?", "open% s?"]] if changed else [])
    assert len(found.examples) == min(changed, 3)


def test_some_rows_of_many_are_checked(tmp_path):
    # one placeholder in 20 rows, and never in the first of them
    rows = [("Zahl", f"{number} %s" if number % 20 == 7 else f"{number}") for number in range(2000)]
    path = tmp_path / "0.arrow"
    chunk = RawChunk(path, rows, clean=True, keep_raw=False, settings=CLEANED, check_every=20)
    tokenize_chunk(chunk)
    found = read_json(card_of(path))["round_trip"]
    assert 70 < found["checked"] < 130
    assert 1 < found["changed"] < 10


def test_running_text_is_split_at_spaces(tmp_path):
    path = tmp_path / "train-00000.arrow"
    rows = [(" = Don't @-@ = ",), ("",)]
    tokenize_chunk(RawChunk(path, rows, clean=False, keep_raw=False, settings=WORDS))
    assert read_chunk(path).to_pydict() == {"text": ["= Don't @-@ =", ""]}


def test_every_third_row_is_held_out_across_chunks(tmp_path):
    rows = [str(n) for n in range(1, 11)]
    found = {"train": [], "valid": []}
    for number, (start, end) in enumerate([(0, 4), (4, 4), (4, 10)]):
        path = tmp_path / f"{number}.arrow"
        write_chunk(path, {"source": rows[start:end], "target": rows[start:end]}, {})
        parts = [tmp_path / f"{name}-{number}.arrow" for name in found]
        divide_chunk(Division(path, *parts, before=start, every=3))
        for name, part in zip(found, parts, strict=True):
            found[name] += read_chunk(part)["source"].to_pylist()
    assert found == {"train": ["1", "2", "4", "5", "7", "8", "10"], "valid": ["3", "6", "9"]}


def test_both_sides_are_counted_together(tmp_path):
    path = tmp_path / "0.arrow"
    write_chunk(path, {"source": ["a b a", ""], "target": ["b", "c"], "raw_source": ["x", "x"]}, {})
    assert count_words(path) == Counter(a=2, b=2, c=1)
    assert PAIRS.vocabulary is not None
