import bz2
import gzip
import io
import lzma

import pytest

from talkconv.data.lines import WINDOWS, Reading, decoded, find, find_below, read_lines, read_pairs
from tests.data.cases import write


def test_lines_as_they_are(tmp_path):
    lines = ["one", "", " two\u2028still two \r inside ", "ß"]
    for name in ("plain", "packed.gz"):
        assert list(read_lines(write(tmp_path / name, lines), Reading())) == lines


def test_the_last_line_needs_no_end(tmp_path):
    (tmp_path / "a").write_bytes(b"one\ntwo")
    assert list(read_lines(tmp_path / "a", Reading())) == ["one", "two"]


def test_windows_line_ends_and_marks_are_removed_and_told(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    reading = Reading()
    assert list(read_lines(tmp_path / "a", reading)) == ["one", "two"]
    assert reading.notes == {WINDOWS: 2}


def test_broken_utf8_is_told_with_its_place(tmp_path):
    (tmp_path / "a").write_bytes("gut\nschön\n".encode() + "Mädchen\n".encode("latin1"))
    with pytest.raises(ValueError, match=r"a:3 must be UTF-8, got b'\\xe4dch' at byte 2.*iconv"):
        list(read_lines(tmp_path / "a", Reading()))


def test_missing_empty_and_torn_files(tmp_path):
    with pytest.raises(ValueError, match="nowhere must be a text file, and does not exist"):
        list(read_lines(tmp_path / "nowhere", Reading()))
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="empty must hold text, and is empty"):
        list(read_lines(tmp_path / "empty", Reading()))
    for name, data in (("torn.gz", gzip.compress(b"text\n" * 99)[:-9]), ("no.gz", b"text")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=f"{name} must be a whole gzip file"):
            list(read_lines(tmp_path / name, Reading()))


def test_a_file_may_be_allowed_to_be_empty(tmp_path):
    (tmp_path / "empty").touch()
    assert list(read_lines(tmp_path / "empty", may_be_empty=True)) == []


def test_a_packed_file_is_known_by_its_content(tmp_path):
    (tmp_path / "text.en").write_bytes(gzip.compress(b"one\ntwo\n"))
    assert list(read_lines(tmp_path / "text.en")) == ["one", "two"]
    for kind, pack in (("bzip2", bz2.compress), ("xz", lzma.compress)):
        (tmp_path / "text.en").write_bytes(pack(b"one\n"))
        with pytest.raises(ValueError, match=f"plain or gzipped, got {kind}: unpack it first"):
            list(read_lines(tmp_path / "text.en"))


def test_a_stream_is_read_like_a_file(tmp_path):
    data = b"\xef\xbb\xbfone\r\n\ntwo\rstill two\n\xef\xbb\xbfthree"
    (tmp_path / "a").write_bytes(data)
    expected = ["one", "", "two\rstill two", "\ufeffthree"]
    assert list(decoded(io.BytesIO(data), "-")) == list(read_lines(tmp_path / "a")) == expected
    with pytest.raises(ValueError, match=r"standard input:2 must be UTF-8"):
        list(decoded([b"a\n", b"\xff\n"], "standard input"))


def test_unequal_line_counts(tmp_path):
    long, short = write(tmp_path / "a.de", ["1", "2", "3"]), write(tmp_path / "a.en", ["1", "2"])
    told = r"a.en ends after line 2, a.de goes on"
    for pair in ((long, short), (short, long)):
        with pytest.raises(ValueError, match=told):
            list(read_pairs(*pair, Reading()))


def test_progress_counts_the_bytes_of_the_file(tmp_path):
    for name in ("plain", "packed.gz"):
        path = write(tmp_path / name, ["some text"] * 2_500)
        steps = []
        for _ in read_lines(path, Reading(advance=steps.append)):
            pass
        assert sum(steps) == path.stat().st_size
        assert len(steps) == 3


def test_files_are_found_plain_or_packed(tmp_path):
    packed = write(tmp_path / "below" / "b.en.gz", ["x"])
    plain = write(tmp_path / "a.en", ["x"])
    assert find(tmp_path, "b.en", "a.en") == plain
    assert find(tmp_path, "b.en") is None
    assert find_below(tmp_path, "b.en") == packed
