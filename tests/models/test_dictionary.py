import pytest
from transformers import AutoTokenizer

from talkconv.models.dictionary import SPECIALS, read_dictionary, tokenizer_of


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_words_follow_the_special_ones(tmp_path):
    path = write(tmp_path / "dict.txt", "der 10\n, 9\nhäus@@ 3\n")
    assert read_dictionary(path) == [*SPECIALS, "der", ",", "häus@@"]


def test_tokenizer_splits_at_spaces_and_ends_the_sentence(tmp_path):
    tokenizer_of([*SPECIALS, "a", "b@@", "c"]).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer("b@@ c  a x").input_ids == [5, 6, 4, 3, 2]
    assert tokenizer.decode([5, 6, 2], skip_special_tokens=True) == "b@@ c"
    assert (tokenizer.bos_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 1, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1\nb\n", "dict.txt:2 must be a word and its count, got 'b'"),
        ("a 1\na 1\n", "must have each word once, got 'a' again"),
        ("</s> 1\n", "must have each word once"),
    ],
)
def test_a_file_that_is_no_dictionary_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_dictionary(write(tmp_path / "dict.txt", text))


def test_a_binary_file_is_refused(tmp_path):
    path = tmp_path / "dict.txt"
    path.write_bytes(b"\x80\x02\xff\xfe")
    with pytest.raises(ValueError, match="must be a dictionary in UTF-8"):
        read_dictionary(path)
