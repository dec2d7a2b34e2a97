import pytest

from talkconv.files import new_folder, next_folder, recover, remove_folder, whole_file
from tests.data.cases import left_in


def test_a_folder_is_complete_or_absent(tmp_path):
    def write(fail):
        with new_folder(tmp_path / "out") as folder:
            (folder / "a").touch()
            assert not (tmp_path / "out").exists()
            if fail:
                raise RuntimeError

    with pytest.raises(RuntimeError):
        write(fail=True)
    assert left_in(tmp_path) == []
    write(fail=False)
    assert left_in(tmp_path) == ["out"]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755
    with pytest.raises(ValueError, match="must not exist yet"):
        write(fail=False)


def test_a_file_is_complete_or_absent(tmp_path):
    out = tmp_path / "out.txt"
    for text in ("first", "second"):
        with whole_file(out) as path:
            path.write_text(text)
    assert out.read_text() == "second"

    def fail():
        with whole_file(out) as path:
            path.write_text("third")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (left_in(tmp_path), out.read_text()) == (["out.txt"], "second")


def test_the_next_folder_takes_the_place_of_the_last_or_leaves_it(tmp_path):
    out = tmp_path / "out"
    for text in ("first", "second"):
        with next_folder(out) as folder:
            (folder / "a").write_text(text)
    assert (out / "a").read_text() == "second"

    def fail():
        with next_folder(out) as folder:
            (folder / "a").write_text("third")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (left_in(tmp_path), (out / "a").read_text()) == (["out"], "second")


def test_recover_restores_what_was_moved_and_removes_the_rest(tmp_path):
    (tmp_path / ".moved.old").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / ".there.old").mkdir()
    (tmp_path / ".begun.unfinished").mkdir()
    recover(tmp_path)
    assert left_in(tmp_path) == ["moved", "there"]
    remove_folder(tmp_path / "there")
    assert left_in(tmp_path) == ["moved"]
