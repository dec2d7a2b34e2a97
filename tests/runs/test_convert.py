import subprocess
import sys

import pytest
import torch
from transformers import AutoTokenizer
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.runs.convert import TARGET_TOKENIZER, convert


@pytest.fixture
def separate(authors):
    """Return the file and the dictionaries of a checkpoint with two vocabularies."""
    name = authors / "seq2seq_noglu_separate"
    return name.with_suffix(".pt"), [f"{name}.dict.src.txt", f"{name}.dict.tgt.txt"]


def run(*arguments):
    return CliRunner().invoke(app, ["convert", *map(str, arguments)])


def test_command_writes_a_folder_with_both_tokenizers(separate, tmp_path):
    checkpoint, dictionaries = separate
    result = run(checkpoint, *dictionaries, tmp_path / "model")
    assert result.exit_code == 0, result.output
    assert "3 + 2 layers, 33 words" in result.output.replace("\n", "")
    source = AutoTokenizer.from_pretrained(tmp_path / "model")
    target = AutoTokenizer.from_pretrained(tmp_path / "model" / TARGET_TOKENIZER)
    assert source("s0 s36").input_ids == [4, 40, 2]
    assert target("t0 t28").input_ids == [4, 32, 2]
    assert (len(source), len(target)) == (41, 33)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_one_dictionary_serves_both_sides(authors, tmp_path):
    name = "seq2seq_glu_shared"
    result = run(authors / f"{name}.pt", authors / f"{name}.dict.src.txt", tmp_path / "model")
    assert result.exit_code == 0, result.output
    assert not (tmp_path / "model" / TARGET_TOKENIZER).exists()


def test_wrong_dictionaries_are_refused_and_nothing_remains(separate, tmp_path):
    checkpoint, (source, target) = separate
    for dictionaries, message in [
        ([target, source], "source side of this network has 41 words"),
        ([source], "target side of this network has 33 words"),
        ([source, target, source], "takes 1 or 2 dictionaries, got 3"),
        ([source, checkpoint], "must be a dictionary in UTF-8"),
    ]:
        result = run(checkpoint, *dictionaries, tmp_path / "model")
        assert result.exit_code == 1
        assert message in result.output.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_nothing_remains_when_writing_fails(separate, tmp_path, monkeypatch):
    def fail(*arguments, **settings):
        raise OSError("no space left")

    monkeypatch.setattr("talkconv.runs.convert.tokenizer_of", fail)
    result = run(separate[0], *separate[1], tmp_path / "model")
    assert (result.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert "no space left" in result.output


def test_a_folder_with_content_is_left_alone(separate, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="must not exist yet"):
        convert(separate[0], [], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_broken_file_is_one_message(tmp_path):
    broken = tmp_path / "broken.pt"
    torch.save({"weight": torch.ones(2)}, broken)
    result = run(broken, "dict.txt", tmp_path / "model")
    assert result.exit_code == 1
    assert "not converted" in result.output
    assert "Traceback" not in result.output


def test_other_commands_do_not_wait_for_transformers():
    script = "import sys, talkconv, talkconv.cli; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
