import numpy

from talkconv.data.chunks import write_chunk
from talkconv.data.prepare import prepare
from talkconv.data.repeats import count_repeats, row_hashes
from tests.data.cases import PAIRS, write_pairs


def test_equal_rows_have_equal_numbers(tmp_path):
    path = tmp_path / "0.arrow"
    columns = {"source": ["a", "a", "a b", "a"], "target": ["b c", "b c", "c", "b"]}
    write_chunk(path, columns, {})
    first, second, third, fourth = row_hashes(path)
    assert first == second
    assert len({first, third, fourth}) == 3


def test_short_lines_of_running_text_are_not_compared(tmp_path):
    path = tmp_path / "0.arrow"
    long = "one two three four five six seven eight"
    write_chunk(path, {"text": ["", "= Title =", long, long[: -len(" eight")], long]}, {})
    hashes = row_hashes(path)
    assert len(hashes) == 2
    assert hashes[0] == hashes[1]


def test_each_split_is_compared_with_itself_and_those_before_it():
    rows = dict(train=[1, 2, 3, 3, 3], valid=[4, 4, 1], test=[], test2=[3, 4, 5, 3])
    splits = {name: numpy.array(hashes, numpy.uint64) for name, hashes in rows.items()}
    assert count_repeats(splits) == {
        "train": {"compared": 5, "train": 2},
        "valid": {"compared": 3, "valid": 1, "train": 1},
        "test": {"compared": 0, "test": 0, "train": 0, "valid": 0},
        "test2": {"compared": 4, "test2": 1, "train": 2, "valid": 1, "test": 0},
    }


def test_preparation_counts_them(tmp_path):
    # the three pairs stand four times in train, and once in each other split
    raw = write_pairs(tmp_path / "raw")
    report = prepare("translation", PAIRS, raw, tmp_path / "out", workers=1).card["report"]
    assert report["repeats"] == {
        "train": {"compared": 12, "train": 9},
        "valid": {"compared": 3, "valid": 0, "train": 3},
        "test": {"compared": 3, "test": 0, "train": 3, "valid": 3},
    }
