"""A server around a real network: a run, and its export, answer alike."""

import json

import pytest

import talkconv
from talkconv.serving.server.open_engine import open_engine
from tests.serving.server.cases import running

SENTENCES = ["Der Hund läuft.", "Katze", "Don't stop – 3 & 4 <s> 猫?", "Die Katze schläft."]


@pytest.fixture(scope="module")
def client(translation):
    with running(open_engine(translation.folder, threads=1)) as client:
        yield client


@pytest.fixture(scope="module")
def of_run(translation):
    with running(open_engine(translation.run)) as client:
        yield client


def test_it_answers_as_the_network_does(client, translation):
    expected = talkconv.load(translation.run).translate(SENTENCES)
    assert client.translate(SENTENCES) == (200, {"translatedText": expected})
    text = "\n".join(SENTENCES) + "\n\n"
    assert client.translate(text)[1]["translatedText"] == "\n".join(expected) + "\n\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("a\0b", 200),
        ("\0" * 300, 200),
        ("\n" * 100_000, 200),
        ("a\n" * 100_000, 413),
        ("a" * 500_000, 413),
        ("a " * 400_000, 413),
        ("x" * 10_000_000, 413),
        ("\u202e\ufeff\u200b", 200),
        ("e" + "\u0301" * 200, 200),
        ("</s> <pad> <unk> @@ ▁ Ġ &lt;s&gt;", 200),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_hostile_text_is_answered_or_refused(client, text, status):
    found, answer = client.translate(text)
    assert found == status
    assert set(answer) == ({"translatedText"} if status == 200 else {"error"})
    if not text.strip():
        assert answer["translatedText"] == text
    # the server goes on
    assert client.translate("Katze")[0] == 200


def test_a_text_comes_as_it_is_written(client):
    _, _, lines = client.ask(
        "POST", "/stream", json.dumps({"q": "Der Hund läuft. Na?", "alternatives": 2})
    )
    items = [json.loads(line) for line in lines.splitlines()]
    assert items[0]["parts"][1::2] == ["Der Hund läuft.", "Na?"]
    ends = {item["sentence"]: item["outputs"] for item in items if "outputs" in item}
    expected = client.translate(["Der Hund läuft.", "Na?"], alternatives=2)[1]
    for number, outputs in ends.items():
        texts = [output["text"] for output in outputs]
        others = expected["alternatives"][number]
        assert texts == [expected["translatedText"][number], *others]
        assert sorted((output["score"] for output in outputs), reverse=True) == [
            output["score"] for output in outputs
        ]
    assert any("text" in item for item in items)


def test_the_windows_of_an_export_are_those_of_its_run(client, of_run):
    for output in (client.translate("Der Hund läuft.")[1]["translatedText"], "", "Katze Hund"):
        ours, theirs = (
            each.post("/windows", q="Der Hund läuft.", output=output)[1]
            for each in (client, of_run)
        )
        assert_alike(ours, theirs)
        assert ours["encoder"]["tokens"][-1] == ours["decoder"]["tokens"][0] == "■"


def test_the_windows_of_a_language_model_have_no_encoder(language_model):
    asked = dict(q="one two", output="three one")
    found = []
    for folder in (language_model.folder, language_model.run):
        with running(open_engine(folder, threads=1)) as client:
            assert client.post("/complete", q="one two", max_length=3)[0] == 200
            found.append(client.post("/windows", **asked)[1])
    assert_alike(*found)
    assert found[0]["encoder"] is None


def assert_alike(ours, theirs):
    """Windows are rounded to hundredths, and may round differently by one of them."""
    assert ours["text"] == theirs["text"]
    for side in ("encoder", "decoder"):
        if ours[side] is None:
            assert theirs[side] is None
            continue
        assert ours[side]["tokens"] == theirs[side]["tokens"]
        for layer, other in zip(ours[side]["layers"], theirs[side]["layers"], strict=True):
            assert (layer["l_max"], layer["r_max"]) == (other["l_max"], other["r_max"])
            for reach in ("left", "right"):
                for head, same in zip(layer[reach], other[reach], strict=True):
                    assert head == pytest.approx(same, abs=0.0101)
                    assert max(head) > 0 or layer["r_max"] == 0
