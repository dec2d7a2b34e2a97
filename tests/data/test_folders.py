import pytest

from talkconv.data.folders import whole_file, whole_folder
from tests.data.cases import left_in


def test_a_folder_is_complete_or_absent(tmp_path):
    def write(fail):
        with whole_folder(tmp_path / "out") as folder:
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
