import pytest

from talkconv.evaluation.evaluate_files import evaluate_files, lines_of


def test_files_without_a_model(files):
    hypotheses, references = files(h=["the cat sat there"] * 3, r=["the cat sat here"] * 3)
    report = evaluate_files(hypotheses, references, ["tokenized-lc", "rouge"])
    assert report.scores[0].name == "BLEU, tokenized, lowercased"
    assert report.scores[1].value == pytest.approx(75)


def test_a_baseline(files):
    lines = [f"a{i} b{i} c{i} d{i} e{i}" for i in range(40)]
    worse = [line.replace("c", "x") for line in lines]
    hypotheses, references, baseline = files(h=lines, r=lines, b=worse)
    report = evaluate_files(hypotheses, references, ["tokenized", "rouge"], baseline)
    assert len(report.comparisons) == 5
    assert all(each.difference > 0 and each.p_value < 0.01 for each in report.comparisons)


def test_the_last_line_may_lack_its_end(tmp_path):
    path = tmp_path / "f"
    for text, lines in {
        "a\nb": 2,
        "a\nb\n": 2,
        "a\n\n": 2,
        "\n": 1,
        "a\r\nb\r\n": 2,
    }.items():
        path.write_bytes(text.encode())
        assert len(lines_of(path)) == lines
    assert lines_of(path) == ["a", "b"]


def test_a_lone_carriage_return_ends_no_line(tmp_path):
    hypotheses, references = tmp_path / "h", tmp_path / "r"
    text = "the cat\rsat on the mat\na dog slept on the mat\n"
    hypotheses.write_bytes(text.encode())
    references.write_bytes(text.replace("\r", " ").encode())
    report = evaluate_files(hypotheses, references, ["sacrebleu"])
    assert report.scores[0].value == pytest.approx(100)
    assert report.about["lines"] == 2


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path):
    hypotheses, references = tmp_path / "h", tmp_path / "r"
    hypotheses.write_bytes(b"\xef\xbb\xbfthe cat sat down\r\n")
    references.write_bytes(b"the cat sat down\n")
    report = evaluate_files(hypotheses, references, ["tokenized"])
    assert report.scores[0].value == pytest.approx(100)


def test_the_split_into_sentences_fits_the_files(files):
    tokenized, raw = files(t=["u.s. troops left ."], r=["U.S. troops left."])
    for path, end in ((tokenized, ".!? standing alone"), (raw, ".!? before a space")):
        report = evaluate_files(path, path, ["rouge"])
        assert report.scores[-1].signature.endswith(f"sentences end after {end}")
