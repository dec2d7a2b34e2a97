import subprocess
import sys

from talkconv.report.locks import locked


def test_a_lock_is_held_by_one_alone(tmp_path):
    with locked(tmp_path / "runs" / "lock") as first, locked(tmp_path / "runs" / "lock") as second:
        assert first is not None
        assert second is None
    with locked(tmp_path / "runs" / "lock") as again:
        assert again is not None


def test_a_child_process_keeps_the_lock_after_its_parent_ended(tmp_path):
    wait = "import sys; sys.stdin.read()"
    with locked(tmp_path / "lock") as held:
        child = subprocess.Popen(
            [sys.executable, "-c", wait], pass_fds=[held], stdin=subprocess.PIPE
        )
    with locked(tmp_path / "lock") as mine:
        assert mine is None
    child.communicate()
    with locked(tmp_path / "lock") as mine:
        assert mine is not None
