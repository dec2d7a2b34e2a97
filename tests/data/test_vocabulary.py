import pytest

from talkconv.data.vocabulary import SPECIALS, bpe_backend, word_backend

WORDS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def test_special_words_have_the_ids_of_the_networks():
    for backend in (bpe_backend(WORDS, 40), word_backend(WORDS)):
        assert [backend.token_to_id(name) for name in SPECIALS] == [0, 1, 2, 3]


def test_a_bpe_vocabulary_has_the_size_asked_for():
    # 4 special ones, and l o w</w> w e r</w> n s t</w> i d
    smallest = 4 + 11
    for size in (smallest, smallest + 5):
        assert bpe_backend(WORDS, size).get_vocab_size() == size
    with pytest.raises(ValueError, match=rf"vocabulary = {smallest - 1} must hold 11 characters"):
        bpe_backend(WORDS, smallest - 1)


def test_every_size_up_to_the_last_merge():
    words = {"abcx": 9, "bcy": 20, "abz": 12, "abcabc": 2}
    full = bpe_backend(words, 1_000).get_vocab_size()
    for size in range(4 + 7, full + 1):
        assert bpe_backend(words, size).get_vocab_size() == size


def test_rare_characters_are_unknown():
    backend = bpe_backend({"aa": 9, "aß": 1}, 20, min_frequency=2)
    assert backend.encode("aß").ids[-2:] == [3, 2]
    assert 3 not in backend.encode("aa").ids


def test_words_go_by_frequency_then_alphabet():
    backend = word_backend({"b": 3, "a": 3, "c": 7, "rare": 1, "<unk>": 99}, min_frequency=2)
    assert backend.encode("c a b rare <unk>").ids == [4, 5, 6, 3, 3, 2]
    assert backend.get_vocab_size() == 7


def test_every_text_ends_with_eos():
    for backend in (bpe_backend(WORDS, 40), word_backend(WORDS)):
        assert backend.encode("").ids == [2]
        assert backend.encode("low newest").ids[-1] == 2
