from itertools import chain

import numpy
import pytest
from datasets import Dataset

from talkconv.data.chunks import card_of, read_json, write_chunk
from talkconv.data.data_settings import DataSettings
from talkconv.data.encoding import WordChunks, encode_pairs, encode_text, write_blocks
from talkconv.data.vocabulary import bpe_backend, word_backend


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.json"
    word_backend({"a": 3, "b": 2, "c": 1}).save(str(path))
    return path


def test_pairs_end_with_eos_and_are_cut_before_it(tmp_path, words):
    settings = DataSettings(corpus="pairs", max_source_tokens=2)
    columns = {"source": ["a b c", "a b"], "target": ["c x <unk>", ""]}
    write_chunk(tmp_path / "0.arrow", columns, {})
    shard = tmp_path / "shard.arrow"
    encode_pairs(WordChunks([tmp_path / "0.arrow"], shard, words, clean=False, settings=settings))
    data = Dataset.from_file(str(shard))
    assert data["source"][:] == [[4, 5, 2], [4, 5, 2]]
    assert data["target"][:] == [[6, 3, 3, 2], [2]]
    assert data.features["source"].feature.dtype == "int32"
    counts = read_json(card_of(shard))["counts"]
    tokens = dict(source_tokens=6, target_tokens=5, source_cut=1, target_cut=0)
    # one word is unknown, and one was <unk> in the text
    assert counts == dict(rows=2, unknown=2, given_unknown=1, **tokens)


def test_cleaning_by_subwords(tmp_path):
    tokenizer = tmp_path / "bpe.json"
    bpe_backend({"ab": 1, "abc": 1}, 20).save(str(tokenizer))
    settings = DataSettings(
        corpus="pairs", vocabulary=20, max_length=3, max_ratio=2.0, length_in="subwords"
    )
    columns = {"source": ["abc", "abc ab", "abc"], "target": ["ab", "ab", "a"]}
    write_chunk(tmp_path / "0.arrow", columns, {})
    for clean, rows in ((True, 1), (False, 3)):
        shard = tmp_path / f"{clean}.arrow"
        encode_pairs(
            WordChunks([tmp_path / "0.arrow"], shard, tokenizer, clean=clean, settings=settings)
        )
        assert len(Dataset.from_file(str(shard))) == rows
    assert read_json(tmp_path / "True.json")["dropped"] == {
        "a side of more than 3 subwords": 1,
        "one side more than 2.0 times the other": 1,
    }


@pytest.mark.parametrize("block", [1, 2, 3, 5, 7, 8, 100])
def test_blocks_are_one_unbroken_stream(tmp_path, words, block):
    lines = [["a b", ""], [], ["c"], ["x a a a", "b"]]
    streams = []
    for number, text in enumerate(lines):
        write_chunk(tmp_path / f"{number}.arrow", {"text": text}, {})
        streams.append(tmp_path / f"{number}.npy")
        encode_text(
            WordChunks(
                [tmp_path / f"{number}.arrow"],
                streams[-1],
                words,
                clean=False,
                settings=DataSettings(corpus="text"),
            )
        )
    rows = write_blocks(streams, tmp_path / "shard.arrow", block)
    data = Dataset.from_file(str(tmp_path / "shard.arrow"))["tokens"][:]
    assert len(data) == rows
    assert [*chain(*data)] == [4, 5, 2, 2, 6, 2, 3, 4, 4, 4, 2, 5, 2]
    assert {len(row) for row in data[:-1]} <= {block}
    assert 0 < len(data[-1]) <= block
    assert numpy.load(streams[1]).tolist() == []
