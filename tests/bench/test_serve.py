"""The load test of the server counts what is lost and what is mixed up."""

import os

import psutil
import pytest
from typer.testing import CliRunner

from talkconv.bench.serve import measure_load
from talkconv.bench.server_clients import Asked, ask_at_once, counts_of, interface_of
from talkconv.cli import app
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


def test_many_clients_get_their_own_answers():
    engine = FakeEngine()
    with running(engine) as client:
        load = measure_load(interface_of(client.port), psutil.Process(os.getpid()), TEXTS, 100, 600)
    assert (load.counts.requests, load.texts, load.clients) == (600, 50, 100)
    assert (load.counts.lost, load.counts.mixed_up, load.counts.differing) == (0, 0, 0)
    assert load.differing_in_batch == 0
    assert max(map(len, engine.batches)) > 1
    assert list(load.seconds) == ["50", "95", "99"]
    assert sorted(load.seconds.values()) == list(load.seconds.values())
    assert load.memory_after > 0


@pytest.mark.parametrize("task", ["summarization", "language_modelling"])
def test_other_tasks_are_asked_by_their_path(task):
    with running(FakeEngine(task)) as client:
        asked = ask_at_once(interface_of(client.port), TEXTS, clients=3, requests=7)
    assert sorted(each.answer for each in asked) == sorted(text.upper() for text in TEXTS[:7])


def test_answers_to_others_are_noticed():
    with running(MixingEngine()) as client:
        asked = ask_at_once(interface_of(client.port), TEXTS, clients=30, requests=300)
    counts = counts_of(asked, [text.upper() for text in TEXTS])
    assert counts.mixed_up > 0
    assert counts.differing == counts.mixed_up


def test_answers_that_fail_are_noticed(caplog):
    with running(FailingEngine()) as client:
        asked = ask_at_once(interface_of(client.port), TEXTS, clients=1, requests=100)
    assert counts_of(asked, [text.upper() for text in TEXTS]).lost == 2


def test_a_server_that_is_gone_loses_every_request():
    with running(FakeEngine()) as client:
        interface = interface_of(client.port)
    asked = ask_at_once(interface, TEXTS, clients=2, requests=5)
    assert [each.status for each in asked] == [0] * 5


def test_another_answer_to_the_same_text_is_not_mixed_up():
    asked = [Asked(0, 0.1, 200, "a"), Asked(1, 0.1, 200, "bb"), Asked(1, 0.1, 200, "a")]
    counts = counts_of(asked, ["a", "b"])
    assert (counts.lost, counts.differing, counts.mixed_up) == (0, 2, 1)


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
