import pytest

from talkconv.data.data_settings import DataSettings
from talkconv.data.lines import Reading
from talkconv.data.own_files import pairs, summaries, text, wikitext
from tests.data.cases import PAIRS, SUMMARIES, WORDS, write


def rows_of(corpus):
    return {name: list(split.rows(Reading())) for name, split in corpus.splits.items()}


def test_aligned_files(tmp_path):
    write(tmp_path / "train.de.gz", ["eins", "zwei"])
    write(tmp_path / "train.en", ["one", "two"])
    for lang in ("de", "en"):
        write(tmp_path / f"val.{lang}", [lang])
    assert rows_of(pairs(tmp_path, PAIRS)) == {
        "train": [("eins", "one"), ("zwei", "two")],
        "valid": [("de", "en")],
    }


def test_a_file_of_two_columns_takes_the_place_of_two(tmp_path):
    write(tmp_path / "train.tsv.gz", ["eins\tone", "", 'zwei "und" drei\ttwo and three'])
    write(tmp_path / "dev.tsv", ["de\ten"])
    for lang in ("de", "en"):
        write(tmp_path / f"test.{lang}", [lang])
    write(tmp_path / "test2017.tsv", ["vier\tfour"])
    assert rows_of(pairs(tmp_path, PAIRS)) == {
        "train": [("eins", "one"), ("", ""), ('zwei "und" drei', "two and three")],
        "valid": [("de", "en")],
        "test": [("de", "en")],
        "test2017": [("vier", "four")],
    }
    for split in ("train", "dev"):
        write(tmp_path / "summaries" / f"{split}.tsv", ["long\tshort"])
    assert rows_of(summaries(tmp_path / "summaries", SUMMARIES))["train"] == [("long", "short")]


@pytest.mark.parametrize(("line", "columns"), [("eins one", 1), ("eins\tone\tCC-BY", 3)])
def test_other_columns_are_refused_with_their_line(tmp_path, line, columns):
    for split in ("train", "valid"):
        write(tmp_path / f"{split}.tsv", ["null\tzero", line])
    with pytest.raises(
        ValueError, match=rf"train.tsv:2 must have two columns.*got {columns}: .*cut"
    ):
        rows_of(pairs(tmp_path, PAIRS))


def test_two_texts_of_one_split_are_refused(tmp_path):
    for name in ("train.de", "train.en", "valid.de", "valid.en"):
        write(tmp_path / name, ["x"])
    write(tmp_path / "train.tsv", ["eins\tone"])
    with pytest.raises(ValueError, match=r"one text of train, got train.tsv and train.de: move"):
        pairs(tmp_path, PAIRS)


def test_aligned_files_of_one_language(tmp_path):
    for split in ("train", "valid"):
        write(tmp_path / f"{split}.source", ["s"])
        write(tmp_path / f"{split}.target", ["t"])
    assert rows_of(pairs(tmp_path, DataSettings(corpus="pairs")))["train"] == [("s", "t")]


def test_summaries(tmp_path):
    for split, end in (("train", "summary"), ("valid", "target"), ("test", "summary")):
        write(tmp_path / f"{split}.source", ["long"])
        write(tmp_path / f"{split}.{end}", ["short"])
    found = rows_of(summaries(tmp_path, SUMMARIES))
    assert found == {split: [("long", "short")] for split in ("train", "valid", "test")}


def test_further_test_sets(tmp_path):
    for split in ("train", "valid", "test2017", "test_coco"):
        for lang in ("de", "en"):
            write(tmp_path / f"{split}.{lang}", [f"{split} {lang}"])
    # these files are not of this corpus
    for name in ("test2017.fr", "testing", "test.en.bak", "test2018.en.txt"):
        write(tmp_path / name, ["x"])
    found = rows_of(pairs(tmp_path, PAIRS))
    assert list(found) == ["train", "valid", "test2017", "test_coco"]
    assert found["test2017"] == [("test2017 de", "test2017 en")]
    write(tmp_path / "test2018.de.gz", ["half"])
    with pytest.raises(ValueError, match=r"test2018\.en"):
        pairs(tmp_path, PAIRS)


def test_further_running_text(tmp_path):
    for name in ("train", "valid", "test", "test-new"):
        write(tmp_path / f"{name}.txt", [name])
    assert rows_of(text(tmp_path, WORDS))["test-new"] == [("test-new",)]


def test_running_text(tmp_path):
    for split in ("train", "dev"):
        write(tmp_path / f"{split}.txt", ["a b", "", "c"])
    expected = [("a b",), ("",), ("c",)]
    assert rows_of(text(tmp_path, WORDS)) == {"train": expected, "valid": expected}


def test_wikitext_as_published(tmp_path):
    for split in ("train", "valid", "test"):
        write(tmp_path / f"wiki.{split}.tokens", ["", " = Title = ", ""])
    found = rows_of(wikitext(tmp_path, WORDS))
    assert found["train"] == [("",), (" = Title = ",), ("",)]
    assert list(found) == ["train", "valid", "test"]


@pytest.mark.parametrize(
    ("corpus", "settings", "names"),
    [
        (pairs, PAIRS, ["train.de", "train.en", "valid.de", "valid.en"]),
        (summaries, SUMMARIES, ["train.source", "train.summary", "valid.source", "valid.summary"]),
        (text, WORDS, ["train.txt", "valid.txt"]),
        (wikitext, WORDS, ["wiki.train.tokens", "wiki.valid.tokens"]),
    ],
)
def test_missing_files_are_listed(tmp_path, corpus, settings, names):
    with pytest.raises(ValueError, match=r"must hold these files") as error:
        corpus(tmp_path, settings)
    assert str(error.value).split("\n")[1:-1] == [f"  {name}" for name in names]


def test_half_a_test_set_is_a_mistake(tmp_path):
    for name in ("train.de", "train.en", "valid.de", "valid.en", "test.de"):
        write(tmp_path / name, ["x"])
    with pytest.raises(ValueError, match=r"test\.en"):
        pairs(tmp_path, PAIRS)
