import subprocess
import sys

import pytest

from talkconv.data.specials import SMALLEST_RAW, SPECIALS
from talkconv.data.vocabulary import bpe_backend, byte_backend, unigram_backend, word_backend

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


HARD = [
    "a  b\t c ",
    "▁x",
    "家がある ñ \u2028 é\u0301",
    "",
    "%s <b>x</b> </s> <pad>",
    "\x00\x01",
    "🇩🇪 👨‍👩‍👧",
]
TEXTS = ["Der Hund läuft.", "The dog runs.", "Die Katze schläft nicht.", "The cat sleeps."] * 5


@pytest.mark.parametrize("learn", [byte_backend, unigram_backend])
def test_every_byte_of_raw_text_is_kept(learn):
    backend = learn(iter(TEXTS), 300)
    backend.encode_special_tokens = True
    assert [backend.token_to_id(name) for name in SPECIALS] == [0, 1, 2, 3]
    assert SMALLEST_RAW <= backend.get_vocab_size() <= 300
    for text in [*HARD, *TEXTS]:
        ids = backend.encode(text).ids
        assert ids[-1] == 2
        assert not {0, 1, 3} & set(ids)
        assert backend.decode(ids) == text
    # something was learnt
    assert len(backend.encode(TEXTS[0]).ids) < len(TEXTS[0])


def test_a_unigram_model_has_the_same_ids_each_time():
    # the trainer adds up in an order that depends on the process
    code = (
        "from tests.data.test_vocabulary import TEXTS, unigram_backend;"
        "print(unigram_backend(iter(TEXTS), 300).to_str())"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        for _ in range(2)
    }
    assert found == {f"{unigram_backend(iter(TEXTS), 300).to_str()}\n".encode()}


def test_a_unigram_model_that_cannot_be_so_small():
    texts = [chr(0x4E00 + n % 200) * 3 + f" wort{n % 37} {n}" for n in range(400)]
    with pytest.raises(
        ValueError, match=r"vocabulary = 260 is too small for tokenizer = 'unigram'"
    ):
        unigram_backend(iter(texts), SMALLEST_RAW)
