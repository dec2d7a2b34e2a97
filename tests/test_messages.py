import pytest
import typer

from talkconv.messages import INTERRUPTED, did_you_mean, one_message


def test_a_hint_suggests_or_lists():
    assert did_you_mean("clipp", ["clip", "seed"]) == "did you mean 'clip'?"
    assert did_you_mean("zzz", ["clip", "seed"], "[training] has") == "[training] has clip, seed"


@pytest.mark.parametrize("kind", [ValueError, OSError])
def test_a_mistake_is_one_unbroken_line_on_standard_error(kind, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    with pytest.raises(typer.Exit) as caught, one_message("not done"):
        raise kind("a long [message] " * 10)
    assert caught.value.exit_code == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "not done: " + "a long [message] " * 10 + "\n")


def test_our_own_mistakes_keep_their_traceback():
    with pytest.raises(ZeroDivisionError), one_message("not done"):
        1 / 0  # noqa: B018


def test_an_interruption_says_how_to_go_on(capsys):
    with pytest.raises(typer.Exit) as caught, one_message("not done", interrupted="call it again"):
        raise KeyboardInterrupt
    assert caught.value.exit_code == INTERRUPTED
    assert capsys.readouterr().err == "interrupted: call it again\n"
    with pytest.raises(KeyboardInterrupt), one_message("not done"):
        raise KeyboardInterrupt
