import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from talkconv.bench.own_process import DoesNotFit, run_alone
from talkconv.bench.peak_memory import peak_of

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells peaks by /proc")


def whoami():
    return os.getpid(), torch.get_num_threads()


def ones(count):
    """Make a tensor of `count` ones, and return the peak of this run."""
    torch.ones(8)
    return peak_of(lambda: torch.ones(count))


def fail():
    raise KeyError("deliberate")


def die():
    os._exit(3)


def test_a_function_runs_in_another_process_with_the_same_threads():
    process, threads = run_alone(whoami)
    assert process != os.getpid()
    assert threads == torch.get_num_threads()


@needs_proc
def test_the_peak_of_a_large_tensor_is_seen():
    found = run_alone(ones, 20 << 20)
    assert 79 << 20 < found.bytes < 84 << 20
    assert found.seconds > 0


@needs_proc
def test_too_large_a_tensor_does_not_take_the_machine_down():
    with pytest.raises(DoesNotFit, match="does not fit into memory"):
        run_alone(ones, 1 << 45)


@pytest.mark.parametrize(("function", "told"), [(fail, "deliberate"), (die, "exit code 3")])
def test_a_failure_is_told_with_its_cause(function, told):
    with pytest.raises(RuntimeError, match=told):
        run_alone(function)


def sleep(file):
    Path(file).write_text(str(os.getpid()))
    time.sleep(60)


@needs_proc
def test_a_process_ends_with_its_parent(tmp_path):
    file = tmp_path / "pid"
    code = "import sys; from tests.bench.test_own_process import *; run_alone(sleep, sys.argv[1])"
    root = Path(__file__).parent.parent.parent
    parent = subprocess.Popen([sys.executable, "-c", code, str(file)], cwd=root)
    wait_until(lambda: file.exists() and file.read_text())
    child = Path("/proc") / file.read_text()
    assert child.exists()
    parent.kill()
    parent.wait()
    wait_until(lambda: not child.exists())


def wait_until(holds):
    end = time.monotonic() + 50
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
