import json

import pytest

from talkconv.runs.card import RunCard
from talkconv.serving.export_card import (
    ExportCard,
    NetworkShape,
    fastest_network,
    is_export,
    network_folder,
    networks_of,
)

SHAPE = NetworkShape(
    vocab_size=10,
    source_vocab_size=10,
    dim=8,
    heads=2,
    decoder_l_max=[3],
    encoder_l_max=[1],
    encoder_r_max=[1],
)
CARD = ExportCard(RunCard("translation", "small"), SHAPE, "0.1.0", {"logits": 1e-7})


def test_it_is_read_as_it_was_written(tmp_path):
    assert not is_export(tmp_path)
    CARD.write(tmp_path)
    assert is_export(tmp_path)
    assert ExportCard.read(tmp_path) == CARD


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "reads exports of format 1, got 2: export the run again"),
        ({"colour": "red"}, "must not have a key 'colour'"),
        ({"network": {"dim": 8}}, "must be the card of an export"),
        ({"run": None}, "must be the card of an export"),
        (
            {"run": {"task": "language_modelling", "recipe": "x", "generation": {}}},
            "fit its layers",
        ),
    ],
)
def test_other_cards_are_refused(tmp_path, change, message):
    CARD.write(tmp_path)
    path = tmp_path / "export.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=message):
        ExportCard.read(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "not json"])
def test_a_broken_card_is_told(tmp_path, text):
    (tmp_path / "export.json").write_text(text)
    with pytest.raises(ValueError, match=r"export\.json must be the card of an export"):
        ExportCard.read(tmp_path)


def test_a_folder_without_a_card_is_told(tmp_path):
    with pytest.raises(ValueError, match="give a folder that `talkconv export` wrote"):
        ExportCard.read(tmp_path)


def test_a_network_is_found_by_its_name(tmp_path):
    assert networks_of(tmp_path) == []
    with pytest.raises(ValueError, match="has no network 'float32': it has none"):
        network_folder(tmp_path)
    for name in ("int8", "float32"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "decoder.onnx").touch()
        if name == "int8":
            # an image may leave the larger one out
            assert network_folder(tmp_path) == tmp_path / "int8"
    assert networks_of(tmp_path) == ["float32", "int8"]
    assert network_folder(tmp_path) == tmp_path / "float32"
    assert network_folder(tmp_path, "int8") == tmp_path / "int8"
    with pytest.raises(ValueError, match="has no network 'best': it has float32, int8"):
        network_folder(tmp_path, "best")


def test_the_fastest_network_is_int8_where_there_is_one(tmp_path):
    assert fastest_network(tmp_path) is None
    (tmp_path / "int8").mkdir()
    (tmp_path / "int8" / "decoder.onnx").touch()
    assert fastest_network(tmp_path) == "int8"
