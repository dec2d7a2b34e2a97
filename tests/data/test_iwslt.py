import re

import pytest

from talkconv.data.data_settings import DataSettings
from talkconv.data.iwslt import iwslt14
from talkconv.data.lines import Reading
from tests.data.cases import write

SETTINGS = DataSettings(corpus="iwslt14", source_lang="de", target_lang="en", vocabulary=100)
TESTS = ["TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"]
TALK = [
    "<url>http://www.ted.com/talks/{0}</url>",
    "<keywords>talks, {0}</keywords>",
    "<speaker>Somebody</speaker>",
    "<talkid>535</talkid>",
    "<title>Title {0}</title>",
    "<description>About {0}</description>",
    " First of {0}. ",
    "Then \u2019s {0}.",
]
XML = """<?xml version="1.0" encoding="UTF-8"?>
<mteval>
<refset setid="iwslt2014" srclang="german" trglang="english">
<doc docid="69" genre="lectures">
<url>http://www.ted.com/talks/69</url>
<title>{0} title</title>
<seg id="1"> {0} \u2019s first &amp; best. </seg>
<seg id="2"> {0} last. </seg>
</doc>
</refset>
</mteval>"""


def write_iwslt(folder):
    for lang in ("de", "en"):
        talk = [line.format(lang) for line in TALK]
        write(folder / "de-en" / f"train.tags.de-en.{lang}", talk)
        for name in TESTS:
            path = folder / "de-en" / f"IWSLT14.{name}.de-en.{lang}.xml"
            write(path, XML.format(f"{name} {lang}").split("\n"))
    return folder


def test_talks_keep_their_text_and_lose_their_facts(tmp_path):
    corpus = iwslt14(write_iwslt(tmp_path), SETTINGS)
    assert list(corpus.splits["train"].rows(Reading())) == [
        ("Title de", "Title en"),
        ("About de", "About en"),
        ("First of de.", "First of en."),
        ("Then \u2019s de.", "Then \u2019s en."),
    ]
    assert corpus.valid_every == 23
    assert list(corpus.splits) == ["train", "test"]


def test_the_test_set_consists_of_all_five_sets(tmp_path):
    rows = list(iwslt14(write_iwslt(tmp_path), SETTINGS).splits["test"].rows(Reading()))
    assert rows[0] == ("TED.dev2010 de 's first & best.", "TED.dev2010 en 's first & best.")
    assert [row[0].split(" ")[0] for row in rows[::2]] == TESTS
    assert len(rows) == 10


def test_the_other_direction(tmp_path):
    settings = DataSettings(corpus="iwslt14", source_lang="en", target_lang="de")
    corpus = iwslt14(write_iwslt(tmp_path), settings)
    assert next(corpus.splits["train"].rows(Reading())) == ("Title en", "Title de")


def test_missing_files_are_listed(tmp_path):
    folder = write_iwslt(tmp_path)
    (folder / "de-en" / "train.tags.de-en.en").unlink()
    (folder / "de-en" / "IWSLT14.TED.tst2011.de-en.de.xml").unlink()
    told = r"does not:\n  train.tags.de-en.en\n  IWSLT14.TED.tst2011.de-en.de.xml\nUnpack"
    with pytest.raises(ValueError, match=told):
        iwslt14(folder, SETTINGS)


def test_a_file_without_segments(tmp_path):
    folder = write_iwslt(tmp_path)
    path = write(folder / "de-en" / "IWSLT14.TED.tst2011.de-en.de.xml", ["<mteval></mteval>"])
    with pytest.raises(ValueError, match=re.escape(f"{path} must hold <seg> elements")):
        list(iwslt14(folder, SETTINGS).splits["test"].rows(Reading()))


def test_another_language(tmp_path):
    with pytest.raises(ValueError, match="German and English, got fr and en"):
        iwslt14(tmp_path, DataSettings(corpus="iwslt14", source_lang="fr"))
