import gzip
import io
import sys
import time

import pytest
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.generation.generate import generate, windows
from talkconv.generation.text_generator import generate_texts
from talkconv.loading import load
from talkconv.runs.generation_settings import GenerationSettings
from tests.evaluation.cases import SMALL, language_model, make_run, texts, tokenizer, translator


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))


def lines_of(run, file, **options):
    out = io.StringIO()
    generate(load(run), str(file), out=out, **options)
    return out.getvalue().split("\n")[:-1]


def expected(lines, n_best=1):
    return list(generate_texts(translator(), tokenizer(), lines, SMALL, n_best))


def test_a_line_in_is_a_line_out(run, tmp_path):
    file = tmp_path / "in"
    lines = [*texts(5), "", *texts(3, seed=1)]
    file.write_text("\n".join(lines) + "\n")
    assert lines_of(run, file) == [output.text for (output,) in expected(lines)]


def test_the_recipes_settings_are_the_defaults_and_options_change_them(run, tmp_path):
    file = tmp_path / "in"
    file.write_text("w19 w24\n")
    assert len(lines_of(run, file)[0].split()) == 12
    changed = lines_of(run, file, changes=dict(max_length=4, num_beams=None))
    assert len(changed[0].split()) == 4


def test_scores_and_numbers_of_lines_come_before_the_output(run, tmp_path):
    file = tmp_path / "in"
    file.write_text("w1 w2\n\nw3\n")
    found = [line.split("\t") for line in lines_of(run, file, n_best=2, scores=True)]
    assert [number for number, _, _ in found] == ["1", "1", "2", "2", "3", "3"]
    outputs = [o for outputs in expected(["w1 w2", "", "w3"], 2) for o in outputs]
    assert [text for _, _, text in found] == [o.text for o in outputs]
    assert [float(score) for _, score, _ in found] == pytest.approx(
        [o.score for o in outputs], abs=1e-3
    )


def test_a_cut_line_is_said_with_its_number(run, tmp_path, capsys):
    file = tmp_path / "in"
    file.write_text("w1\nw2\nw3 w4 w5 w6 w7\n")
    lines_of(run, file, changes=dict(max_source_tokens=3, read_ahead=1))
    assert capsys.readouterr().err.strip() == (
        f"{file}:3: 6 tokens, but only 3 are read (max_source_tokens)"
    )


def test_reads_gzipped_lines(run, tmp_path):
    (tmp_path / "in").write_bytes(b"\xef\xbb\xbfw1 w2\r\n\nw3\rw4\n")
    (tmp_path / "in.gz").write_bytes(gzip.compress((tmp_path / "in").read_bytes()))
    lines = lines_of(run, tmp_path / "in.gz")
    assert lines == lines_of(run, tmp_path / "in")
    assert len(lines) == 3


def test_reads_standard_input(run, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"w1 w2\n\nw3 w4 w5\rw6 w7\n")))
    lines = lines_of(run, "-", changes=dict(max_source_tokens=4))
    assert len(lines) == 3
    assert lines[1] == ""
    assert "standard input:3: 6 tokens" in capsys.readouterr().err


def test_windows_hold_what_has_come():
    def slowly():
        yield from ["a", "", "b"]
        time.sleep(0.3)
        yield "c"

    assert list(windows(slowly(), most=100)) == [["a", "", "b"], ["c"]]
    assert list(windows(iter("abcde"), most=2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(windows(iter(()), most=2)) == []


def test_windows_hand_on_what_went_wrong():
    def broken():
        yield "a"
        raise ValueError("not text")

    found = windows(broken(), most=10)
    assert next(found) == ["a"]
    with pytest.raises(ValueError, match="not text"):
        next(found)


def test_samples_of_a_language_model(tmp_path):
    run = make_run(
        tmp_path, language_model(), generation=GenerationSettings(temperature=1.0, max_length=5)
    )
    file = tmp_path / "in"
    file.write_text("w1 w2\n")
    first, again, other = (lines_of(run, file, seed=seed, n_best=3) for seed in (1, 1, 2))
    assert first == again != other


def command(*arguments):
    return CliRunner().invoke(app, ["generate", *map(str, arguments)])


def test_the_command(run, tmp_path):
    file = tmp_path / "in"
    file.write_text("w19 w24\n")
    answer = command(run, file, "--beams", 2, "--max-length", 3)
    assert answer.exit_code == 0
    assert len(answer.stdout.split()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "-"], "nowhere must be the folder of a run"),
        (["RUN", "missing.txt"], "must be a text file, and does not exist"),
        (["RUN", "BINARY"], "must be UTF-8"),
        (["RUN", "-", "--model", "last"], "has no model 'last': it has best"),
        (["RUN", "-", "--n-best", "9"], "n_best must be from 1 to num_beams=3, got 9"),
        (["RUN", "-", "--beams", "0"], "num_beams must be at least 1, got 0"),
    ],
)
def test_mistakes_are_one_message(run, tmp_path, arguments, message):
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    answer = command(*({"RUN": run, "BINARY": binary}.get(each, each) for each in arguments))
    assert answer.exit_code == 1
    assert message in answer.stderr.replace("\n", " ")
    assert "Traceback" not in answer.output
