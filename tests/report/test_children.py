import sys
import threading
import time

import pytest

from talkconv.report.children import Children, Stopped


@pytest.fixture
def program(tmp_path):
    """Return a program of the test that replaces talkconv."""

    def write(text):
        path = tmp_path / "program.py"
        path.write_text(text)
        children = Children([sys.executable, str(path)])
        return children, dict(cwd=tmp_path, log=tmp_path / "logs" / "log")

    return write


def test_a_command_has_one_thread_and_its_output_is_kept(program):
    children, place = program(
        "import os, sys; print(os.environ['OMP_NUM_THREADS'], sys.argv[2:]); exit(3)"
    )
    for word in ("a", "b"):
        assert children.call(["talkconv", word], **place) == 3
    assert place["log"].read_text() == "1 ['a']\n1 ['b']\n"


WAITING = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: (print("saved", flush=True), sys.exit(130)))
print("ready", flush=True)
time.sleep(60)
"""


def test_stopping_lets_a_command_save(program):
    children, place = program(WAITING)
    errors = []

    def work():
        try:
            children.call(["talkconv", "train"], **place)
        except Stopped as error:
            errors.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    while not place["log"].exists() or "ready" not in place["log"].read_text():
        time.sleep(0.01)
    children.stop()
    thread.join()
    assert errors == ["talkconv train"]
    # one signal, not two
    assert place["log"].read_text() == "ready\nsaved\n"
    with pytest.raises(Stopped):
        children.call(["talkconv", "evaluate"], **place)


def test_a_command_that_ctrl_c_ended_stops_the_others(program):
    children, place = program("exit(130)")
    with pytest.raises(Stopped):
        children.call(["talkconv", "train"], **place)


def test_a_command_gets_no_ctrl_c_from_the_terminal(program):
    children, place = program("import os; print(os.getsid(0) == os.getpid())")
    children.call(["talkconv", "x"], **place)
    assert place["log"].read_text() == "True\n"
