import pyarrow
from datasets import Dataset

from talkconv.data.chunks import card_of, read_chunk, read_json, shard_writer, write_chunk


def test_a_chunk_and_its_card(tmp_path):
    path = tmp_path / "train-00000.arrow"
    write_chunk(path, {"source": ["ä", ""], "target": ["b\r", "c"]}, {"read": 3})
    assert read_chunk(path).to_pydict() == {"source": ["ä", ""], "target": ["b\r", "c"]}
    assert read_json(card_of(path)) == {"kept": 2, "read": 3}


def test_a_shard_is_what_datasets_maps(tmp_path):
    schema = pyarrow.schema([("tokens", pyarrow.list_(pyarrow.int32()))])
    with shard_writer(tmp_path / "a.arrow", schema) as writer:
        for rows in ([[1, 2]], [], [[3]]):
            arrays = [pyarrow.array(rows, schema.types[0])]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))
    data = Dataset.from_file(str(tmp_path / "a.arrow"))
    assert data["tokens"][:] == [[1, 2], [3]]
