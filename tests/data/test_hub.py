import json

import pytest

from talkconv.data.data_settings import DataSettings
from talkconv.data.hub import hub
from talkconv.data.lines import Reading

PAIR = dict(source_lang="de", target_lang="en")


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """Keep the library's caches in the folder of this test."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


def write_dataset(folder, row, splits=("train", "validation", "test")):
    """Write a folder of JSON lines, which the library loads like any dataset."""
    (folder / "mine").mkdir()
    for split in splits:
        path = folder / "mine" / f"{split}.jsonl"
        path.write_text((json.dumps(row) + "\n") * 2, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (dict(translation=dict(de="ein  Hund", en="a dog")), ("ein Hund", "a dog")),
        (dict(en="a dog", de="ein Hund"), ("ein Hund", "a dog")),
        (dict(target="t", source="s"), ("s", "t")),
        (dict(article="a\nb", highlights="c\nd", id="1"), ("a b", "c d")),
        (dict(document="a", summary="b"), ("a", "b")),
    ],
)
def test_pairs(tmp_path, row, expected):
    write_dataset(tmp_path, row)
    corpus = hub(tmp_path, DataSettings(corpus="datasets:mine", **PAIR))
    assert {name: list(split.rows(Reading())) for name, split in corpus.splits.items()} == {
        name: [expected] * 2 for name in ("train", "valid", "test")
    }
    assert corpus.identity == "datasets:mine"


def test_running_text(tmp_path):
    write_dataset(tmp_path, dict(text=" = Title = \n"), ["train", "validation"])
    corpus = hub(tmp_path, DataSettings(corpus="datasets:mine"))
    assert list(corpus.splits["train"].rows(Reading())) == [(" = Title = ",)] * 2
    assert "test" not in corpus.splits


def test_unknown_columns_and_splits(tmp_path):
    write_dataset(tmp_path, dict(question="q", answer="a"), ["train", "validation"])
    settings = DataSettings(corpus="datasets:mine", **PAIR)
    with pytest.raises(ValueError, match=r"or text, got \['question', 'answer'\]"):
        hub(tmp_path, settings)
    (tmp_path / "mine" / "validation.jsonl").unlink()
    path = tmp_path / "mine" / "train.jsonl"
    path.write_text(json.dumps(dict(source="s", target="t")), encoding="utf-8")
    with pytest.raises(ValueError, match="must have a split validation"):
        hub(tmp_path, settings)


def test_a_name_that_does_not_exist(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="datasets:nobody/nothing cannot be loaded"):
        hub(tmp_path, DataSettings(corpus="datasets:nobody/nothing"))
