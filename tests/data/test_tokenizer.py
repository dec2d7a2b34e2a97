import json
import os
import subprocess
import sys
from collections import Counter

import pytest
import torch
from transformers import AutoTokenizer

import talkconv.models  # noqa: F401  AutoTokenizer knows the tokenizer from here on
from talkconv.data.data_settings import DataSettings
from talkconv.data.moses import Moses
from talkconv.data.text_rules import make_rules
from talkconv.data.tokenizer import TaLKConvTokenizer, load_tokenizer, make_tokenizer
from talkconv.data.vocabulary import bpe_backend, byte_backend, word_backend

TEXTS = {
    "de": ["Ein Mann schläft nicht.", "Wie geht's dir?"],
    "en": ["A man doesn't sleep.", 'He said "yes" (twice) & left.'],
}
SETTINGS = DataSettings(corpus="pairs", source_lang="de", target_lang="en", vocabulary=120)


def made(**rules):
    settings = DataSettings(**{**SETTINGS.as_dict(), **rules})
    words = Counter()
    for lang, lines in TEXTS.items():
        moses = Moses(lang, lowercase=settings.lowercase)
        words.update(word for line in lines for word in moses.tokenize(line).split())
    return make_tokenizer(bpe_backend(words, 120), settings)


@pytest.fixture(params=["made", "load_tokenizer", "AutoTokenizer"])
def tokenizer(request, tmp_path):
    """Return the tokenizer as it was made, and as it was loaded in two ways."""
    tokenizer = made()
    if request.param == "made":
        return tokenizer
    tokenizer.save_pretrained(tmp_path)
    reader = {"load_tokenizer": load_tokenizer, "AutoTokenizer": AutoTokenizer.from_pretrained}
    return reader[request.param](tmp_path)


def test_raw_text_in_raw_text_out(tokenizer):
    for text in TEXTS["en"]:
        ids = tokenizer(text_target=text)["input_ids"]
        assert ids[-1] == tokenizer.eos_token_id == 2
        assert tokenizer.unk_token_id not in ids
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_batches(tokenizer):
    batch = tokenizer(TEXTS["de"], padding=True, return_tensors="pt")
    lengths = [len(tokenizer(text)["input_ids"]) for text in TEXTS["de"]]
    assert batch["input_ids"].shape == (2, max(lengths))
    assert batch["attention_mask"].sum(1).tolist() == lengths
    assert (batch["input_ids"][batch["attention_mask"] == 0] == 1).all()
    targets = tokenizer(text_target=TEXTS["en"])["input_ids"]
    assert tokenizer.batch_decode(targets, skip_special_tokens=True) == TEXTS["en"]


def test_each_side_has_its_language(tokenizer):
    both = tokenizer("Wie geht's dir?", text_target="A man doesn't sleep.")
    # German sets an apostrophe apart, English keeps it with its contraction
    assert tokenizer.decode_tokenized(both["input_ids"]) == "Wie geht &apos; s dir ?"
    assert tokenizer.decode_tokenized(both["labels"]) == "A man doesn &apos;t sleep ."
    assert tokenizer.tokenized_text("doesn't") == "doesn &apos;t"
    assert tokenizer.tokenized_text("geht's", "de") == "geht &apos; s"
    # text_target does not change later calls
    assert tokenizer("geht's")["input_ids"] == tokenizer("geht 's")["input_ids"]


def test_subwords_of_raw_text(tokenizer):
    assert "".join(tokenizer.tokenize("Ein Mann.")).split("</w>") == ["Ein", "Mann", ".", ""]


def test_nothing_is_eos(tokenizer):
    assert tokenizer("")["input_ids"] == [2]
    assert tokenizer.decode([2], skip_special_tokens=True) == ""


def test_the_recipes_rules_are_kept(tmp_path):
    made(lowercase=True, split_hyphens=True).save_pretrained(tmp_path)
    read = load_tokenizer(tmp_path)
    assert read.tokenized_text("Ein-Mann") == "ein @-@ mann"


def test_special_names_in_a_text_are_text():
    tokenizer = made()
    ids = tokenizer("</s> <pad>")["input_ids"]
    assert ids.count(2) == 1
    assert 1 not in ids


def test_word_level():
    settings = DataSettings(corpus="text")
    tokenizer = make_tokenizer(word_backend({"a": 3, "b": 2, "@-@": 1}), settings)
    assert tokenizer(" b  a @-@ new ")["input_ids"] == [5, 4, 6, 3, 2]
    assert tokenizer.decode([5, 4, 6, 2], skip_special_tokens=True) == "b a @-@"


def test_special_names_in_words(tmp_path):
    settings = DataSettings(corpus="text")
    make_tokenizer(word_backend({"a": 3, "a<s>b": 2}), settings).save_pretrained(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer("a <s> </s> <pad> <unk> a<s>b x</s>")["input_ids"] == [4, 3, 3, 3, 3, 5, 3, 2]


def test_marked_subwords(tmp_path):
    settings = DataSettings(corpus="pairs", source_lang="en", target_lang="de", tokenizer="none")
    words = {"a": 3, "play@@": 2, "house": 2, "pl@@": 1, "ay": 1}
    codes = [("h", "o"), ("u", "s"), ("us", "e</w>"), ("ho", "use</w>"), ("p", "l"), ("a", "y</w>")]
    made = make_tokenizer(word_backend(words), settings, codes)
    made.save_pretrained(tmp_path)
    for tokenizer in (made, load_tokenizer(tmp_path)):
        ids = tokenizer("a play@@ house")["input_ids"]
        assert tokenizer.convert_ids_to_tokens(ids) == ["a", "play@@", "house", "</s>"]
        assert tokenizer.decode(ids, skip_special_tokens=True) == "a playhouse"
        assert tokenizer.decode_tokenized(ids) == tokenizer.tokenized_text("a play@@ house")
        assert tokenizer.tokenize("a play house") == ["a", "pl@@", "ay", "house"]


def test_folders_of_older_versions(tmp_path):
    made().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    config["moses"] = config.pop("text_tokenizer") == "moses"
    del config["codes"]
    for moses, words in ((True, "doesn &apos;t"), (False, "doesn't")):
        config["moses"] = moses
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        assert load_tokenizer(tmp_path).tokenized_text("doesn't") == words


def test_a_prompt_is_open():
    settings = DataSettings(corpus="text")
    backend = word_backend({"a": 3, "b": 2})
    tokenizer = make_tokenizer(backend, settings, open_ended=True)
    assert tokenizer("a b")["input_ids"] == tokenizer.encode("a b") == [2, 4, 5]
    assert tokenizer("")["input_ids"] == [2]
    assert tokenizer.encode("a b", add_special_tokens=False) == [4, 5]


@pytest.mark.parametrize("kind", ["moses", "none", "bytes"])
def test_a_continuation_fits_to_its_prompt(kind, tmp_path):
    """transformers' pipeline decodes only the new ids, and appends their text to the prompt."""
    lines = ["A man doesn't sleep.", "He left, and came back."]
    settings = DataSettings(
        corpus="text", tokenizer=kind, vocabulary=None if kind == "none" else 300
    )
    if kind == "bytes":
        backend = byte_backend(iter(lines), 300)
    else:
        words = Counter(
            word for line in lines for word in make_rules(kind, "en", {}).words(line).split()
        )
        backend = word_backend(words) if kind == "none" else bpe_backend(words, 300)
    make_tokenizer(backend, settings, open_ended=True).save_pretrained(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    for line in lines:
        ids = tokenizer(line)["input_ids"]
        assert tokenizer.decode(ids, skip_special_tokens=True) == line
        padded = torch.tensor([[tokenizer.pad_token_id, *ids]])
        assert tokenizer.decode(padded, skip_special_tokens=True) == [line]
        prompt = line.split(" ")[0]
        # a pipeline cuts where the ids of the prompt end
        length = len(tokenizer(prompt)["input_ids"])
        assert prompt + tokenizer.decode(ids[length:]) == line
    comma = tokenizer(lines[1])["input_ids"]
    if kind != "none":
        length = len(tokenizer("He left")["input_ids"])
        assert tokenizer.decode(torch.tensor(comma[length:])) == ", and came back."
    assert tokenizer.decode([]) == ""


def test_all_ways_to_encode_and_decode_agree(tokenizer):
    text = TEXTS["de"][1]
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.encode(text) == ids
    assert tokenizer.encode(text, add_special_tokens=False) == ids[:-1]
    assert tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) == ids[:-1]
    pieces = tokenizer.convert_ids_to_tokens(ids[:-1])
    assert tokenizer.convert_tokens_to_string(pieces) == tokenizer.decode(ids[:-1])
    assert tokenizer.decode([ids, ids]) == tokenizer.batch_decode([ids, ids])
    assert tokenizer.decode([ids])[0] == tokenizer.decode(ids)


def test_no_texts(tokenizer):
    assert dict(tokenizer([])) == {"input_ids": [], "attention_mask": []}
    assert dict(tokenizer([], text_target=[])) == {
        "input_ids": [],
        "attention_mask": [],
        "labels": [],
    }
    assert tokenizer(text_target=[])["input_ids"] == []
    empty = tokenizer([], padding=True, return_tensors="pt")
    assert empty["input_ids"].shape == (0, 0)
    assert empty["input_ids"].dtype == torch.int64
    with pytest.raises(ValueError, match="equally many texts, got an empty list"):
        tokenizer(["a"], text_target=[])


WITHOUT_TALKCONV = """
import json, sys
from transformers import AutoTokenizer
folder, text = sys.argv[1:]
try:
    AutoTokenizer.from_pretrained(folder)
except ValueError as error:
    print(json.dumps(str(error)))
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
print(json.dumps(tokenizer(text)["input_ids"]))
tokenizer.save_pretrained(folder)
assert "talkconv.models" not in sys.modules
"""


def test_without_talkconv_there_are_no_wrong_ids(tmp_path):
    expected, text = made(), 'Wie geht\'s "dir"?'
    expected.save_pretrained(tmp_path / "saved")
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home")}
    for _ in range(2):
        # the second time, what the first one saved is loaded
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_TALKCONV, str(tmp_path / "saved"), text],
            capture_output=True,
            check=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        refused, ids = done.stdout.splitlines()[-2:]
        assert "trust_remote_code=True" in refused
        assert json.loads(ids) == expected(text)["input_ids"]
    assert type(AutoTokenizer.from_pretrained(tmp_path / "saved")) is TaLKConvTokenizer


def test_pairs_and_words_are_refused():
    tokenizer = made()
    for call in (
        lambda: tokenizer(["Ein", "Mann"], is_split_into_words=True),
        lambda: tokenizer("Ein Mann", "schläft"),
        lambda: tokenizer.encode("Ein Mann", "schläft"),
        lambda: tokenizer.tokenize("Ein Mann", "schläft"),
    ):
        with pytest.raises(ValueError, match="one raw text or a list of them"):
            call()


def test_a_folder_without_a_tokenizer(tmp_path):
    with pytest.raises(ValueError, match=r"must be a folder with tokenizer\.json"):
        load_tokenizer(tmp_path)
