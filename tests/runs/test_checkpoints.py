import errno
import os
import resource
import shutil
import signal

import pytest
import torch

from talkconv.data.position import Position
from talkconv.files import replace_folder
from talkconv.runs import checkpoints
from talkconv.runs.checkpoints import (
    NotSaved,
    checkpoint_path,
    checkpoints_of,
    keep_last,
    publish,
    read_position,
    recover_run,
    step_of,
    whole,
    write_position,
)


def alone(final):
    return whole(final, writes=True, wait=lambda: None)


def make(folder, text="x"):
    folder.mkdir(parents=True)
    (folder / "file").write_text(text)
    return folder


def test_a_folder_appears_when_it_is_whole(tmp_path):
    final = checkpoint_path(tmp_path, 7)
    with alone(final) as unfinished:
        (unfinished / "file").write_text("x")
        assert not final.exists()
        assert checkpoints_of(tmp_path) == []
    assert (final / "file").read_text() == "x"
    assert list(final.parent.iterdir()) == [final]
    assert [step_of(path) for path in checkpoints_of(tmp_path)] == [7]


def test_what_fails_leaves_nothing_and_says_how_full_the_disk_is(tmp_path):
    final = checkpoint_path(tmp_path, 7)

    def fill_the_disk():
        with alone(final) as unfinished:
            (unfinished / "file").write_text("x")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(NotSaved, match=r"checkpoint-7 could not .*No space left.* \d+ MB left"):
        fill_the_disk()
    assert list(final.parent.iterdir()) == []


def test_what_fails_leaves_the_folder_before_it(tmp_path):
    make(tmp_path / "best", "old")
    with pytest.raises(NotSaved), alone(tmp_path / "best"):
        raise RuntimeError("a library's own words")
    assert (tmp_path / "best" / "file").read_text() == "old"


def test_a_disk_that_fills_up_while_a_file_is_written(tmp_path):
    """The system limits the size of a file, so that a write of torch stops in the middle."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(NotSaved, match="No incomplete files"), alone(tmp_path / "best") as out:
            torch.save(torch.zeros(1_000_000), out / "weights")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert list(tmp_path.iterdir()) == []


def killed_at(moment, action) -> None:
    """Run `action` in a process that dies before its `moment`-th change of the file tree."""
    child = os.fork()
    if not child:
        left = [moment]

        def dying(change):
            def wrapper(*args, **kwargs):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return change(*args, **kwargs)

            return wrapper

        for module, name in [(os, "rename"), (os, "fsync"), (os, "unlink"), (os, "rmdir")]:
            setattr(module, name, dying(getattr(module, name)))
        try:
            action()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.parametrize("moment", range(8))
def test_a_kill_at_any_moment_leaves_the_old_folder_or_the_new_one(tmp_path, moment):
    make(tmp_path / "best", "old")

    def write():
        with alone(tmp_path / "best") as unfinished:
            (unfinished / "file").write_text("new")

    killed_at(moment, write)
    recover_run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["best"]
    assert (tmp_path / "best" / "file").read_text() in ("old", "new")


def test_a_kill_between_the_two_renames_is_undone(tmp_path):
    make(tmp_path / ".best.old", "old")
    make(tmp_path / ".best.unfinished", "new")
    make(tmp_path / "checkpoints" / ".checkpoint-3.unfinished")
    recover_run(tmp_path)
    assert (tmp_path / "best" / "file").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best", "checkpoints"]
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_replace_takes_the_place_of_a_folder(tmp_path):
    make(tmp_path / "best", "old")
    replace_folder(make(tmp_path / "new", "new"), tmp_path / "best")
    assert [path.name for path in tmp_path.iterdir()] == ["best"]
    assert (tmp_path / "best" / "file").read_text() == "new"


def test_the_last_ones_stay(tmp_path):
    for step in (3, 100, 20):
        make(checkpoint_path(tmp_path, step))
    keep_last(tmp_path, 2)
    assert [step_of(path) for path in checkpoints_of(tmp_path)] == [20, 100]


@pytest.mark.parametrize("can_link", [True, False])
def test_publish_takes_the_network_alone(tmp_path, can_link, monkeypatch):
    checkpoint = make(checkpoint_path(tmp_path, 3), "weights")
    for name in ("optimizer.pt", "scheduler.pt", checkpoints.STATE, checkpoints.POSITION):
        (checkpoint / name).write_text("x")
    if not can_link:

        def refuse(*args):
            raise OSError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", refuse)
    publish(checkpoint, tmp_path / "last")
    shutil.rmtree(checkpoint)
    assert [path.name for path in (tmp_path / "last").iterdir()] == ["file"]
    assert (tmp_path / "last" / "file").read_text() == "weights"


def test_a_place_in_the_data_is_written_and_read(tmp_path):
    write_position(tmp_path, Position(3, 14))
    assert read_position(tmp_path) == Position(3, 14)


@pytest.mark.parametrize("text", [None, "no json", "[]", '{"epoch": 1, "turn": 2}'])
def test_a_broken_place_is_named_with_the_cure(tmp_path, text):
    if text is not None:
        (tmp_path / checkpoints.POSITION).write_text(text)
    with pytest.raises(ValueError, match=r"position.json must hold a position .* Remove"):
        read_position(tmp_path)
