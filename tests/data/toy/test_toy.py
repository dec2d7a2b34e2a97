import itertools
import subprocess
import sys

import pytest

from talkconv.data import toy


def test_the_sizes_are_those_asked_for_and_no_sentence_comes_twice():
    splits = {name: list(pairs) for name, pairs in toy.generate(dict(train=3000, test=50)).items()}
    assert {name: len(pairs) for name, pairs in splits.items()} == {"train": 3000, "test": 50}
    for pairs in splits.values():
        assert len({pair.source for pair in pairs}) == len(pairs)


@pytest.mark.parametrize("size", [500, pytest.param(8_000, marks=pytest.mark.slow)])
def test_no_test_sentence_is_in_training_whatever_the_seed(size):
    held_out = set()
    for seed in range(3):
        splits = toy.generate(dict(valid=size // 20, test=size // 20), seed)
        held_out |= {pair.source for pairs in splits.values() for pair in pairs}
    # few sentences seldom occur twice by chance, so their split is asked for as well
    assert {toy.split_of(source) for source in held_out} == {"valid", "test"}
    for seed in range(3):
        train = {pair.source for pair in toy.generate(dict(train=size), seed)["train"]}
        assert not train & held_out
        assert {toy.split_of(source) for source in train} == {"train"}


def test_seeds_differ_and_repeat():
    first, again, other = (list(toy.generate(dict(valid=20), seed)["valid"]) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_another_process_says_the_same():
    """The other process has other hash values, so the order must not depend on them."""
    script = (
        "from talkconv.data import toy\n"
        "for pair in toy.generate({'test': 200})['test']: print(pair.source, pair.target, sep='|')"
    )
    expected = [f"{pair.source}|{pair.target}" for pair in toy.generate({"test": 200})["test"]]
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, check=True, env=environment
        )
        assert done.stdout.decode().splitlines() == expected


def test_it_streams():
    endless = toy.generate({"train": 10**12})["train"]
    assert len(list(itertools.islice(endless, 5))) == 5


def test_unknown_splits_are_refused():
    with pytest.raises(ValueError, match="got \\['dev'\\]"):
        toy.generate({"dev": 1})
