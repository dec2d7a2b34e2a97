import random
from collections import Counter
from itertools import islice, pairwise

import pytest

from talkconv.data.bpe import learn_merges, symbols_of
from talkconv.data.vocabulary import bpe_of_merges


def by_recounting(words, limit):
    """Learn merges by subword-nmt's rule, counting all pairs again after every merge."""
    spelled = {word: symbols_of(word) for word in words}
    merges = []
    while len(merges) < limit:
        counts = Counter()
        for word, symbols in spelled.items():
            for pair in pairwise(symbols):
                counts[pair] += words[word]
        best = max(counts, key=lambda pair: (counts[pair], pair), default=None)
        if best is None or counts[best] < 2:
            break
        merges.append(best)
        spelled = {word: merged(symbols, best) for word, symbols in spelled.items()}
    return merges


def merged(symbols, pair):
    result = []
    for symbol in symbols:
        if result and (result[-1], symbol) == pair and not result[-1].endswith("\0"):
            # marked, so that what was just made is not merged once more from the left
            result[-1] += symbol + "\0"
        else:
            result.append(symbol)
    return [symbol.rstrip("\0") for symbol in result]


@pytest.mark.parametrize("seed", range(60))
def test_merges_are_those_of_recounting(seed):
    # two or three letters: repeated ones overlap, and ties are everywhere
    draw = random.Random(seed)
    letters = "ab" if seed % 2 else "abc"
    words = {
        "".join(draw.choices(letters, k=draw.randint(1, 9))): draw.randint(1, 5)
        for _ in range(draw.randint(1, 25))
    }
    assert list(islice(learn_merges(words), 60)) == by_recounting(words, 60)


def test_ties_go_to_the_end_of_the_alphabet():
    assert next(learn_merges({"ab": 3, "cd": 3})) == ("c", "d</w>")


def test_no_pair_that_occurs_once_is_merged():
    assert list(learn_merges({"abc": 1})) == []


def test_merges_of_subword_nmt(shared):
    folder = shared / "fixtures" / "bpe"
    words = Counter((folder / "corpus.en").read_text(encoding="utf-8").split())
    lines = (folder / "bpe.ref").read_text(encoding="utf-8").splitlines()[1:]
    assert len(lines) == 1000
    assert list(islice(learn_merges(words), 1000)) == [tuple(line.split()) for line in lines]


def test_segmentation_of_subword_nmt(shared):
    folder = shared / "fixtures" / "bpe"
    corpus = (folder / "corpus.en").read_text(encoding="utf-8").splitlines()
    expected = (folder / "corpus.bpe.ref.en").read_text(encoding="utf-8").splitlines()
    lines = (folder / "bpe.ref").read_text(encoding="utf-8").splitlines()[1:]
    merges = [tuple(line.split()) for line in lines]
    characters = sorted({s for line in corpus for word in line.split() for s in symbols_of(word)})
    backend = bpe_of_merges(characters, merges)
    for line, wanted in zip(corpus, expected, strict=True):
        subwords = backend.encode(line, add_special_tokens=False).tokens
        # subword-nmt marks subwords that do not end a word
        marked = [s.removesuffix("</w>") if s.endswith("</w>") else f"{s}@@" for s in subwords]
        assert marked == wanted.split()
