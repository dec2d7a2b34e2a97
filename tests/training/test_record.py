import io

import pytest
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from talkconv.training.log_file import LOG, read_log
from talkconv.training.record import TENSORBOARD, Record

LINE = dict(loss=2.5, learning_rate=1e-3, tokens_per_second=1234.5)


def quiet() -> Console:
    return Console(file=io.StringIO(), width=200)


def test_lines_go_to_the_log_to_tensorboard_and_to_the_reader(tmp_path):
    console = quiet()
    with Record(tmp_path, console, max_steps=10) as record:
        record.open(0)
        record.trained(4, LINE)
        record.validated(4, {"epoch": 0.5, "valid_loss": 2.0}, best=True)
    assert read_log(tmp_path) == [
        {"step": 4, **LINE},
        {"step": 4, "epoch": 0.5, "valid_loss": 2.0},
    ]
    said = console.file.getvalue()
    assert "step 4/10  loss 2.500  1,234 tokens/s  0:00:00 left" in said
    assert "step 4/10  valid_loss 2  (best)" in said
    curves = EventAccumulator(str(tmp_path / TENSORBOARD))
    curves.Reload()
    assert [(event.step, event.value) for event in curves.Scalars("loss")] == [(4, 2.5)]


def test_what_a_killed_process_wrote_of_later_steps_is_forgotten(tmp_path):
    with Record(tmp_path, quiet(), max_steps=10) as record:
        record.open(0)
        for step in (2, 4, 6):
            record.trained(step, LINE)
    with (tmp_path / LOG).open("a") as log:
        log.write('{"step": 8, "lo')
    with Record(tmp_path, quiet(), max_steps=10) as record:
        record.open(4)
        record.trained(6, {**LINE, "loss": 1.0})
    assert [(line["step"], line["loss"]) for line in read_log(tmp_path)] == [
        (2, 2.5),
        (4, 2.5),
        (6, 1.0),
    ]


def test_the_time_left_is_that_of_the_steps_since_the_run_was_resumed(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr("talkconv.training.record.time.monotonic", lambda: now)
    console = quiet()
    with Record(tmp_path, console, max_steps=1000) as record:
        record.open(500)
        now += 60
        record.trained(600, LINE)  # 60 seconds for 100 steps, and 400 steps are left
    assert "0:04:00 left" in console.file.getvalue()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    for name in ("JPY_PARENT_PID", "COLAB_RELEASE_TAG", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def test_one_bar_on_a_terminal(tmp_path, terminal):
    console = Console(file=terminal, width=100)
    with Record(tmp_path, console, max_steps=10) as record:
        record.open(2)
        record.doing("validate 3/9")
        record.trained(4, LINE)
        record.step(4)
    last = console.file.getvalue().split("\n")[-2]
    for part in ("train", "4/10", "loss 2.500", "1,234 tokens/s"):
        assert part in last


def lines_of_steps(tmp_path, console) -> list[str]:
    with Record(tmp_path, console, max_steps=10) as record:
        record.open(0)
        for step in range(1, 11):
            record.step(step)
            record.doing("validate 1/9")
            if step % 5 == 0:
                record.trained(step, LINE)
    return console.file.getvalue().splitlines()


def test_a_log_file_has_one_line_for_each_log_step(tmp_path, monkeypatch):
    # it forces colours, and rich then takes any file for a terminal
    monkeypatch.setenv("FORCE_COLOR", "1")
    lines = lines_of_steps(tmp_path, Console(file=io.StringIO(), width=100))
    assert len(lines) == 2
    assert "step 5/10" in lines[0]


@pytest.mark.parametrize("notebook", ["JPY_PARENT_PID", "COLAB_RELEASE_TAG"])
def test_a_notebook_has_one_line_for_each_log_step(tmp_path, terminal, monkeypatch, notebook):
    monkeypatch.setenv(notebook, "1")
    assert len(lines_of_steps(tmp_path, Console(file=terminal, width=100))) == 2


def test_other_processes_than_the_first_are_silent(tmp_path):
    console = quiet()
    with Record(None, console, max_steps=10) as record:
        record.open(0)
        record.step(1)
        record.say("hello")
        record.validated(4, {"valid_loss": 2.0}, best=False)
    assert console.file.getvalue() == ""
    assert list(tmp_path.iterdir()) == []
