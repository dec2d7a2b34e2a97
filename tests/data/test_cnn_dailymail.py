from hashlib import sha1

import pyarrow
import pyarrow.parquet
import pytest

from talkconv.data.cnn_dailymail import NO_STORY, cnn_dailymail
from talkconv.data.data_settings import DataSettings
from talkconv.data.lines import Reading
from tests.data.cases import write

SETTINGS = DataSettings(corpus="cnn_dailymail", vocabulary=100)
STORY = [
    "LONDON, England (Reuters) -- {0} has come",
    "",
    "He said: \u201cYes.\u201d",
    "",
    "@highlight",
    "",
    "{0} has come",
    "",
    "@highlight",
    "",
    "He speaks .",
]


def write_stories(folder):
    for split, paper in (("train", "cnn"), ("val", "dailymail"), ("test", "cnn")):
        address = f"http://web.archive.org/web/2009/http://{paper}.com:80/{split}"
        name = f"{sha1(address.encode()).hexdigest()}.story"
        write(folder / paper / "stories" / name, [line.format(split) for line in STORY])
        write(folder / "url_lists" / f"all_{split}.txt", [address])
    return folder


def test_stories(tmp_path):
    splits = cnn_dailymail(write_stories(tmp_path), SETTINGS).splits
    assert list(splits) == ["train", "valid", "test"]
    assert list(splits["valid"].rows(Reading())) == [
        (
            "LONDON, England (Reuters) -- val has come. He said: \u201cYes.\u201d",
            "val has come. He speaks .",
        )
    ]


def test_an_address_without_a_story_is_told(tmp_path):
    folder = write_stories(tmp_path)
    with (folder / "url_lists" / "all_test.txt").open("a") as file:
        file.write("http://nowhere\n")
    reading = Reading()
    rows = list(cnn_dailymail(folder, SETTINGS).splits["test"].rows(reading))
    assert (len(rows), reading.notes) == (1, {NO_STORY: 1})


def write_parquet(path, names=("article", "highlights")):
    path.parent.mkdir(exist_ok=True)
    rows = {names[0]: [f"Article of\n{path.stem}."], names[1]: ["One .\nTwo ."], "id": ["0"]}
    pyarrow.parquet.write_table(pyarrow.table(rows), path)


def test_parquet(tmp_path):
    names = ["train-00000-of-00002", "train-00001-of-00002"]
    for name in (*names, "validation-00000-of-00001", "test-00000-of-00001"):
        write_parquet(tmp_path / "3.0.0" / f"{name}.parquet")
    splits = cnn_dailymail(tmp_path, SETTINGS).splits
    expected = [(f"Article of {name}.", "One . Two .") for name in names]
    assert list(splits["train"].rows(Reading())) == expected
    assert len(list(splits["valid"].rows(Reading()))) == 1


def test_parquet_of_something_else(tmp_path):
    for name in ("train", "validation", "test"):
        write_parquet(tmp_path / "3.0.0" / f"{name}-0.parquet", ("document", "summary"))
    with pytest.raises(ValueError, match=r"train-0.parquet must be parquet with the columns"):
        list(cnn_dailymail(tmp_path, SETTINGS).splits["train"].rows(Reading()))


def test_missing_files_are_listed(tmp_path):
    write(tmp_path / "all_train.txt", ["http://x"])
    told = r"all_val.txt\n  all_test.txt\n  cnn/stories/\*.story\n.*parquet"
    with pytest.raises(ValueError, match=r"(?s)" + told):
        cnn_dailymail(tmp_path, SETTINGS)
