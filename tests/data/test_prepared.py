import json
from itertools import chain

import pytest

from talkconv.data.prepare import prepare
from talkconv.data.prepared import CARD, fingerprint_of, open_prepared
from tests.data.cases import ENGLISH, GERMAN, PAIRS, WORDS, write_pairs, write_text


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    prepare("translation", PAIRS, write_pairs(folder / "raw"), folder / "out", recipe="mine")
    return folder / "out"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    prepare("language_modelling", WORDS, write_text(folder / "raw"), folder / "out")
    return folder / "out"


def test_what_a_folder_says_of_itself(pairs):
    prepared = open_prepared(str(pairs))
    assert (prepared.task, prepared.recipe, prepared.settings) == ("translation", "mine", PAIRS)
    assert prepared.splits() == ["train", "valid", "test"]
    assert prepared.fingerprint == fingerprint_of(pairs / "tokenizer")


def test_rows_and_texts_are_of_the_same_sentences(pairs):
    prepared = open_prepared(pairs)
    assert prepared.texts("test") == (GERMAN, ENGLISH)
    rows, tokenizer = prepared.split("test"), prepared.tokenizer()
    assert tokenizer.batch_decode(rows["target"][:], skip_special_tokens=True) == ENGLISH
    assert rows["source"][:] == [tokenizer(text)["input_ids"] for text in GERMAN]
    assert rows["target"][:] == [tokenizer(text_target=text)["input_ids"] for text in ENGLISH]
    assert len(prepared.split("train")) == 12


def test_running_text(running):
    prepared = open_prepared(running)
    assert prepared.lines("valid") == ["", " = A title = ", "", " one two two three <unk> ", ""]
    tokens = [*chain(*prepared.split("valid")["tokens"])]
    assert tokens.count(2) == 5
    # a line begins after the end of the one before it; other ids continue a line
    rows = [tokens[:6], tokens[1:6]]
    lines = prepared.tokenizer().batch_decode(rows, skip_special_tokens=True)
    assert lines == ["= A title =", " = A title ="]


def test_asking_for_what_is_not_there(pairs, running):
    with pytest.raises(ValueError, match=r"call lines\('test'\)"):
        open_prepared(running).texts("test")
    prepared = open_prepared(pairs)
    with pytest.raises(ValueError, match=r"call texts\('test'\)"):
        prepared.lines("test")
    with pytest.raises(ValueError, match="keeps the text of valid and test only"):
        prepared.texts("train")
    with pytest.raises(ValueError, match=r"has the splits \['train', 'valid', 'test'\], got 'dev'"):
        prepared.split("dev")


def test_folders_that_are_none(tmp_path):
    with pytest.raises(ValueError, match=r"must be a prepared folder.*talkconv prepare"):
        open_prepared(tmp_path)
    (tmp_path / CARD).write_text("{")
    with pytest.raises(ValueError, match="must be JSON"):
        open_prepared(tmp_path)
    (tmp_path / CARD).write_text(json.dumps({"format": 99}))
    with pytest.raises(ValueError, match="must have format 1, got 99"):
        open_prepared(tmp_path)
