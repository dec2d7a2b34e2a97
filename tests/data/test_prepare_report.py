import dataclasses

import pytest
from rich.console import Console

from talkconv.data.prepare import prepare
from talkconv.data.prepare_report import print_report
from tests.data.cases import PAIRS, WORDS, write, write_pairs


def test_kept_dropped_and_why(tmp_path):
    raw = write_pairs(tmp_path / "raw")
    for lang in ("de", "en"):
        write(raw / f"train.{lang}", ["eins", "zwei", ""], end="\r\n")
    console = Console(record=True, width=120)
    print_report(prepare("translation", PAIRS, raw, tmp_path / "out"), console)
    text = console.export_text()
    train = next(line for line in text.splitlines() if "train" in line and "│" in line)
    cells = [cell.strip() for cell in train.split("│")[1:-1]]
    assert cells[:5] == ["train", "3", "2", "1 a side is empty", "2"]
    assert "Windows line ends removed: 6" in text


def test_a_broken_placeholder_is_not_hidden(tmp_path):
    raw = write_pairs(tmp_path / "raw")
    for lang in ("de", "en"):
        write(raw / f"test.{lang}", ["a dog", "the file %s", "no more"])
    console = Console(record=True, width=40)
    print_report(prepare("translation", PAIRS, raw, tmp_path / "out"), console)
    text = console.export_text()
    changed = "1 of 3 checked texts change, for example 'the file %s' to 'the file% s'"
    assert f"round trip, test: {changed}" in text
    assert "round trip, valid: 0 of 3 checked texts change\n" in text
    assert "round trip, train" not in text  # of two rows, none was checked
    assert "data.protected keeps whole what matches a pattern" in text


def printed(raw, out, task, settings):
    console = Console(record=True, width=120)
    print_report(prepare(task, settings, raw, out, workers=1), console)
    return console.export_text()


def test_repeated_rows_are_told(tmp_path):
    text = printed(write_pairs(tmp_path / "raw"), tmp_path / "out", "translation", PAIRS)
    assert "warning: 9 of 12 rows of train (75.00%) repeat another row of it\n" in text
    assert "warning: 3 of 3 rows of test (100.00%) are in train, too: their scores say" in text
    assert "rows of valid (0" not in text


CURES = [
    (WORDS, "set data.vocabulary, such as data.vocabulary=8000"),
    (dataclasses.replace(WORDS, vocabulary=30, min_frequency=9), "lower data.min_frequency = 9"),
    (dataclasses.replace(WORDS, codes="codes.bpe"), "segment all files with the codes"),
]


@pytest.mark.parametrize(("settings", "cure"), CURES, ids=["words", "subwords", "codes"])
def test_many_unknown_words_are_told_with_the_cure(tmp_path, settings, cure):
    raw = tmp_path / "raw"
    write(raw / "codes.bpe", ["#version: 0.2", "a b"])
    write(raw / "train.txt", ["ab ab ab c"] * 9 + ["ab xy"])
    write(raw / "valid.txt", ["ab ab zq ab"])
    text = printed(raw, tmp_path / "out", "language_modelling", settings)
    assert f"% of the tokens of valid are <unk>: {cure}" in text


def test_words_that_are_unk_in_the_text_are_not_counted_as_unknown(tmp_path):
    raw = tmp_path / "raw"
    for split in ("train", "valid"):
        write(raw / f"{split}.txt", ["ab <unk> <unk> c"])
    text = printed(raw, tmp_path / "out", "language_modelling", WORDS)
    assert "warning" not in text
    assert "40.00%" in text
