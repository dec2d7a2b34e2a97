"""The load test of the server counts what is lost and what is mixed up."""

import os
from dataclasses import replace

import psutil
import pytest
from typer.testing import CliRunner

from talkconv.bench.serve import measure_load
from talkconv.bench.server_clients import (
    Asked,
    Counts,
    ask_at_once,
    counts_of,
    foreign_answers,
    interface_of,
    unexplained,
    with_mark,
    without_mark,
)
from talkconv.cli import app
from talkconv.serving.server.service import Service
from tests.serving.server.cases import FakeEngine, running

TEXTS = [f"text {number}" for number in range(50)]


class MixingEngine(FakeEngine):
    """Gives the answers of a batch to the wrong sentences."""

    def run(self, key, payloads):
        found = super().run(key, payloads)
        return [*found[1:], found[0]]


class FailingEngine(FakeEngine):
    """Fails if a batch has a certain sentence."""

    def run(self, key, payloads):
        found = super().run(key, payloads)
        if any(output[0].text == "TEXT 7" for output in found):
            raise RuntimeError
        return found


class ForgetfulEngine(FakeEngine):
    """Tells little about its input: in a batch, a text may get the answer of another one."""

    def run(self, key, payloads):
        found = super().run(key, payloads)
        if len(payloads) > 1:
            found = [[replace(each[0], text=f"TEXT {len(payloads)}")] for each in found]
        return found


def measured(engine, texts=TEXTS, clients=30, requests=300):
    with running(engine) as client:
        process = psutil.Process(os.getpid())
        return measure_load(interface_of(client.port), process, texts, clients, requests)


def test_many_clients_get_their_own_answers():
    engine = FakeEngine()
    load = measured(engine, clients=100, requests=600)
    assert (load.counts.requests, load.texts, load.clients) == (600, 50, 100)
    assert load.counts == Counts(requests=600, lost=0, mixed_up=0, differing=0, foreign=0)
    assert load.differing_in_batch == 0
    assert max(map(len, engine.batches)) > 1
    assert list(load.seconds) == ["50", "95", "99"]
    assert sorted(load.seconds.values()) == list(load.seconds.values())
    assert load.memory_after > 0


def test_the_mark_of_a_request_is_in_its_answer_and_not_in_its_sentence():
    engine = FakeEngine()
    with running(engine) as client:
        for number in (0, 1, 5, 10_000):
            _, answer = client.translate(with_mark("a b", number))
            assert answer["translatedText"] == with_mark("A B", number)
            assert without_mark(answer["translatedText"]) == "A B"
    assert engine.batches == [["a b"]] * 4
    assert len({with_mark("", number) for number in range(1000)}) == 1000


@pytest.mark.parametrize("task", ["summarization", "language_modelling"])
def test_other_tasks_are_asked_by_their_path(task):
    with running(FakeEngine(task)) as client:
        asked = ask_at_once(interface_of(client.port), TEXTS, clients=3, requests=7)
    assert sorted(each.answer for each in asked) == sorted(text.upper() for text in TEXTS[:7])


def test_answers_that_went_to_another_client_are_noticed_if_all_texts_are_alike(monkeypatch):
    """Each request gets the answer of the one before it."""
    write, answers = Service.write, []

    async def write_late(self, q, options, **more):
        answers.append(await write(self, q, options, **more))
        return answers[max(0, len(answers) - 2)]

    monkeypatch.setattr(Service, "write", write_late)
    with running(FakeEngine()) as client:
        asked = ask_at_once(interface_of(client.port), ["a"], clients=3, requests=20)
    counts = counts_of(asked, ["A"], foreign=0)
    # the first request gets its own answer
    assert (counts.mixed_up, counts.lost, counts.differing) == (19, 0, 0)


def test_answers_of_another_text_in_the_batch_are_noticed():
    counts = measured(MixingEngine()).counts
    # the marks are right, because the sentences were mixed up before they were put in place
    assert counts.mixed_up == 0
    assert counts.foreign == counts.differing > 0


def test_an_answer_that_a_text_can_get_by_itself_is_not_foreign():
    engine = ForgetfulEngine()
    with running(engine) as client:
        interface = interface_of(client.port)
        alone = [text.upper() for text in TEXTS]
        suspects = [Asked(0, 0.1, 200, "TEXT 7"), Asked(1, 0.1, 200, "TEXT 6")]
        left = unexplained(interface, TEXTS[:6], alone[:6], suspects, size=6, rounds=3)
    assert foreign_answers(suspects, alone) == suspects
    # batches of six texts have the answer TEXT 6, which none of the six has alone
    assert left == suspects[:1]


def test_answers_that_fail_are_noticed(caplog):
    with running(FailingEngine()) as client:
        asked = ask_at_once(interface_of(client.port), TEXTS, clients=1, requests=100)
    assert counts_of(asked, [text.upper() for text in TEXTS], foreign=0).lost == 2


def test_a_server_that_is_gone_loses_every_request():
    with running(FakeEngine()) as client:
        interface = interface_of(client.port)
    asked = ask_at_once(interface, TEXTS, clients=2, requests=5)
    assert [each.status for each in asked] == [0] * 5


def test_another_answer_is_foreign_if_it_is_that_of_another_text():
    asked = [Asked(0, 0.1, 200, "a"), Asked(1, 0.1, 200, "bb"), Asked(1, 0.1, 200, "a")]
    counts = counts_of(asked, ["a", "b"], foreign=1)
    assert (counts.lost, counts.differing, counts.foreign) == (0, 2, 1)
    assert foreign_answers(asked, ["a", "b"]) == asked[2:]


def test_a_folder_that_cannot_be_served_is_told(tmp_path):
    lines = tmp_path / "lines"
    lines.write_text("a\n")
    result = CliRunner().invoke(app, ["bench", "serve", str(tmp_path), str(lines)])
    assert result.exit_code == 1
    assert "not measured: the server did not start" in result.output
    assert "not served" in result.output
    lines.write_text("\n \n")
    result = CliRunner().invoke(app, ["bench", "serve", str(tmp_path), str(lines)])
    assert "must have lines of text" in result.output
