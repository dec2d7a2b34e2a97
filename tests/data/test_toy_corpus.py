import pytest

from talkconv.data.data_settings import DataSettings
from talkconv.data.lines import Reading
from talkconv.data.toy_corpus import toy


def test_sizes_and_directions():
    settings = dict(corpus="toy", toy_pairs=300)
    there = toy(DataSettings(**settings, source_lang="de", target_lang="en"))
    back = toy(DataSettings(**settings, source_lang="en", target_lang="de"))
    rows = {name: list(split.rows(Reading())) for name, split in there.splits.items()}
    assert {name: len(found) for name, found in rows.items()} == {
        "train": 300,
        "valid": 100,
        "test": 100,
    }
    turned = [row[::-1] for row in rows["test"]]
    assert list(back.splits["test"].rows(Reading())) == turned


def test_other_languages():
    with pytest.raises(ValueError, match="German and English, got fr and en"):
        toy(DataSettings(corpus="toy", source_lang="fr"))
