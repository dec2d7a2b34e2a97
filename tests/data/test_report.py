from rich.console import Console

from talkconv.data.prepare import prepare
from talkconv.data.report import print_report
from tests.data.cases import PAIRS, write, write_pairs


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
    changed = "1 of 3 texts change, for example 'the file %s' to 'the file% s'"
    assert f"round trip, test: {changed}" in text
    assert "round trip, valid: 0 of 3 texts change\n" in text
    assert "data.protected keeps whole what matches a pattern" in text
