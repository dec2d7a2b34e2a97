import pytest

from talkconv.data.segmentation import Segmenter, is_segmented, read_codes, undo_marks
from tests.data.cases import write

CODES = ["#version: 0.2", "h o", "u s", "us e</w>", "ho use</w>"]


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("a play@@ house .", "a playhouse ."),
        ("w@@ o@@ r@@ d", "word"),
        ("it ends@@", "it ends"),
        ("a@@b me@me @@@ c", "a@@b me@me @c"),
        ("", ""),
    ],
)
def test_marks_are_undone_as_sed_does_it(marked, words):
    # sed -r 's/(@@ )|(@@ ?$)//g'
    assert undo_marks(marked) == words
    assert is_segmented(marked) == (marked != words)


def test_codes_segment_words(tmp_path):
    segmenter = Segmenter(read_codes(write(tmp_path / "codes", CODES)))
    assert segmenter.segment("house houses us") == "house ho@@ us@@ e@@ s u@@ s"
    # characters that the codes do not know are subwords of their own
    assert segmenter.segment("ßhouseß 家") == "ß@@ ho@@ us@@ e@@ ß 家"
    assert segmenter.segment("") == ""


def test_a_repeated_merge_counts_once(tmp_path):
    merges = read_codes(write(tmp_path / "codes", [*CODES, "h o"]))
    assert Segmenter(merges).segment("house") == "house"


def test_files_that_are_no_codes(tmp_path):
    with pytest.raises(ValueError, match="must be a codes file of subword-nmt, got"):
        read_codes(tmp_path / "absent")
    with pytest.raises(ValueError, match=r"begins with '#version: 0.2', got 'h o'"):
        read_codes(write(tmp_path / "old", CODES[1:]))
    with pytest.raises(ValueError, match=r"broken:3 must be two symbols and one space, got 'h o x"):
        read_codes(write(tmp_path / "broken", [CODES[0], "a b", "h o x"]))


def test_subword_nmt_segments_alike(shared):
    folder = shared / "fixtures" / "bpe"
    segmenter = Segmenter(read_codes(folder / "bpe.ref"))
    corpus = (folder / "corpus.en").read_text(encoding="utf-8").splitlines()
    expected = (folder / "corpus.bpe.ref.en").read_text(encoding="utf-8").splitlines()
    for line, wanted in zip(corpus, expected, strict=True):
        assert segmenter.segment(" ".join(line.split())) == wanted.strip()


def test_codes_of_a_released_corpus_segment_it_as_its_authors_did(shared):
    folder = shared / "data" / "multi30k_en_de"
    segmenter = Segmenter(read_codes(folder / "codes.bpe"))
    for line in (folder / "test.de").read_text(encoding="utf-8").splitlines():
        assert segmenter.segment(undo_marks(line)) == line
