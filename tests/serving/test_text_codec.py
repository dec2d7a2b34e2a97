import pytest

from talkconv.data.data_settings import DataSettings
from talkconv.data.prepare import prepare
from talkconv.data.tokenizer import load_tokenizer
from talkconv.serving.text_codec import TextCodec
from tests.data.cases import write_pairs, write_text
from tests.evaluation.cases import tokenizer
from tests.serving.cases import LINES

PAIRS = dict(corpus="pairs", source_lang="de", target_lang="en")
SETTINGS = {
    "moses": dict(PAIRS, vocabulary=60, lowercase=True, normalize=True, split_hyphens=True),
    "words": dict(PAIRS, tokenizer="none"),
    "bytes": dict(PAIRS, tokenizer="bytes", vocabulary=400),
    "language model": dict(corpus="text", block=8),
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_it_does_what_the_tokenizer_does(tmp_path, kind):
    settings = DataSettings(**SETTINGS[kind])
    is_text = kind == "language model"
    raw = (write_text if is_text else write_pairs)(tmp_path / "raw")
    task = "language_modelling" if is_text else "translation"
    prepare(task, settings, raw, tmp_path / "data", workers=1)
    theirs = load_tokenizer(tmp_path / "data" / "tokenizer")
    ours = TextCodec(tmp_path / "data" / "tokenizer")
    assert len(ours) == len(theirs)
    assert ours.eos_token_id == theirs.eos_token_id
    for line in [*LINES, "one two three"]:
        ids = theirs(line)["input_ids"]
        assert ours(line)["input_ids"] == ours.encode(line) == ids
        assert ours.encode_target(line) == theirs(text_target=line)["input_ids"]
        assert ours.tokenized_text(line) == theirs.tokenized_text(line)
        assert ours.decode_tokenized(ids) == theirs.decode_tokenized(ids)
        for some in (ids, ids[1:], ids[:-1]):
            for skip in (True, False):
                expected = theirs.decode(some, skip_special_tokens=skip)
                assert ours.decode(some, skip_special_tokens=skip) == expected
        assert ours.pieces(ids) == theirs.convert_ids_to_tokens(ids)


def test_a_tokenizer_of_transformers_is_taken_as_it_is(tmp_path):
    theirs = tokenizer()
    theirs.save_pretrained(tmp_path)
    ours = TextCodec(tmp_path)
    for line in ("w1 w2  w3", "w4 unknown </s> w5", ""):
        ids = theirs(line)["input_ids"]
        assert ours.encode(line) == ids
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
        assert ours.tokenized_text(line) == line


def test_a_folder_without_a_tokenizer_is_told(tmp_path):
    with pytest.raises(ValueError, match="must hold a tokenizer"):
        TextCodec(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"has no tokenizer\.json"):
        TextCodec(tmp_path)
