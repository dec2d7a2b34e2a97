import pytest

from talkconv.data.corpora import open_corpus
from talkconv.data.data_settings import CORPORA, DataSettings
from tests.data.cases import PAIRS, write_pairs


def test_a_corpus_by_its_name(tmp_path):
    assert list(open_corpus(write_pairs(tmp_path), PAIRS).splits) == ["train", "valid", "test"]


@pytest.mark.parametrize("name", [name for name in CORPORA if name != "toy"])
def test_every_name_opens_or_tells_what_it_needs(tmp_path, name):
    langs = dict(iwslt14=("de", "en"), wmt16_en_de=("en", "de"), wmt14_en_fr=("en", "fr"))
    source, target = langs.get(name, ("de", "en"))
    settings = DataSettings(corpus=name, source_lang=source, target_lang=target)
    with pytest.raises(ValueError, match="must hold these files, and does not"):
        open_corpus(tmp_path, settings)
    with pytest.raises(ValueError, match="needs its raw files: --raw DIR"):
        open_corpus(None, settings)
    with pytest.raises(ValueError, match="nowhere must be a folder"):
        open_corpus(tmp_path / "nowhere", settings)


def test_the_toy_needs_no_files():
    settings = DataSettings(corpus="toy", source_lang="de", target_lang="en")
    assert list(open_corpus(None, settings).splits) == ["train", "valid", "test"]
