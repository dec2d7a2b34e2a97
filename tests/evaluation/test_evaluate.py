import pytest
from typer.testing import CliRunner

from talkconv.cli import app


def command(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def test_the_command_prints_one_table(translated):
    answer = command(translated)
    assert answer.exit_code == 0, answer.output
    assert "BLEU, tokenized" in answer.stdout
    assert "35.5" in answer.stdout
    assert "multi-bleu.perl: BLEU = " in answer.stdout
    assert f"written: {translated}/evaluation/test.json" in answer.stdout


def test_the_command_scores_files(files):
    hypotheses, references = files(h=["a b c d e"], r=["a b c d e"])
    answer = command("--hypotheses", hypotheses, "--references", references)
    assert answer.exit_code == 0, answer.output
    assert "nrefs:1|case:mixed|eff:no|tok:13a" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a run (talkconv evaluate RUN), or files"),
        (["--hypotheses", "H"], "give a run"),
        (["--hypotheses", "H", "--references", "R"], "H has 2 lines and R has 3"),
        (["--hypotheses", "R", "--references", "R", "--baseline", "H"], "H has 2 lines and R has"),
        (["--hypotheses", "R", "--references", "R", "--protocol", "bleu"], "protocol must be one"),
        (["--hypotheses", "gone", "--references", "R"], "must be a text file, and does not exist"),
        (["RUN", "--split", "dev"], "has the splits"),
        (["RUN", "--protocol", "chrf"], "leave out --protocol"),
        (["RUN", "--baseline", "H"], "H has 2 lines and the split has 3"),
        (["RUN", "--data", "gone"], "must be a prepared folder"),
    ],
)
def test_mistakes_are_one_message(translated, files, arguments, message):
    hypotheses, references = files(h=["a", "b"], r=["a", "b", "c"])
    known = {"H": hypotheses, "R": references, "RUN": translated}
    answer = command(*(known.get(each, each) for each in arguments))
    assert answer.exit_code == 1
    for name in "HR":
        message = message.replace(f"{name} has", f"{known[name]} has")
    assert message in answer.stderr
    assert "Traceback" not in answer.output


def test_a_plain_model_names_no_data(translated):
    answer = command(translated / "best")
    assert answer.exit_code == 1
    assert "names no data: give --data DATA, or write outputs" in answer.stderr
