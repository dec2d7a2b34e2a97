import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from talkconv.demo.page import page, write_page
from tests.demo.cases import findings

VOID = {"meta", "link", "circle", "br"}


class Reader(HTMLParser):
    """Collects elements and text, and checks that each element is closed in the right order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.texts = [], [], {}

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("id")))

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for _, name in self.open:
            if name:
                self.texts[name] = self.texts.get(name, "") + data


@pytest.fixture(scope="module")
def text():
    return page(findings())


@pytest.fixture(scope="module")
def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


def test_every_element_is_closed(read):
    assert read.open == []
    assert ("html", {"lang": "en"}) in read.seen


def test_nothing_is_loaded_from_anywhere(text, read):
    addresses = re.findall(r"https?://[^\s\"'<)]+", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert "url(" not in text
    for tag, attributes in read.seen:
        assert "src" not in attributes, tag
        assert attributes.get("href", "data:,") == "data:,", tag


def test_what_was_found_is_told(read):
    facts = " ".join(read.texts["translations"].split())
    assert "Of 2, 1 differ from the reference" in facts
    assert "The <b>man calls." in facts
    assert "The woman calls." in facts
    assert "fell from 4.5 to 1.25" in read.texts["curve"]
    assert "attention takes 4.0 times as long" in " ".join(read.texts["speed"].split())
    assert "talkconv doctor > a.txt" in read.texts["next"]


def test_sentences_with_html_in_them_are_kept_as_data(read):
    data = json.loads(read.texts["data"])
    assert [one["text"] for one in data["sentences"]] == ["Die Frau ruft an.", "</script> & <b>"]
    assert data["sentences"][0]["encoder"] == findings().sentences[0]["encoder"]


def test_a_training_that_logged_nothing_has_a_page_without_curves(text):
    silent = page(replace(findings(), log=[]))
    assert (text.count('class="chart"'), silent.count('class="chart"')) == (3, 1)


def test_the_page_is_complete_or_absent(tmp_path, monkeypatch):
    path = tmp_path / "new" / "index.html"
    write_page(findings(), path)
    before = path.read_text(encoding="utf-8")
    monkeypatch.setattr("talkconv.demo.page.page", lambda found: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_page(findings(), path)
    assert path.read_text(encoding="utf-8") == before
    assert [one.name for one in path.parent.iterdir()] == ["index.html"]
