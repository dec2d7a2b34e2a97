"""A server that is told to stop under load finishes what it accepted, and exits with 0."""

import errno
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from talkconv.cli import app
from tests.serving.server.cases import Client, port_of, wait_for

ROOT = Path(__file__).parent.parent.parent.parent
CLIENTS = 40


class Asking(threading.Thread):
    """A client that asks again and again until it is refused."""

    def __init__(self, port, number):
        super().__init__()
        self.client, self.number = Client(port), number
        self.answered, self.refused = {}, None

    def run(self):
        for turn in itertools.count():
            text = f"w{self.number} {turn}"
            try:
                status, answer = self.client.translate(text)
            except (OSError, http.client.HTTPException) as error:
                self.refused = error
                return
            if status != 200:
                self.refused = status, answer["error"]
                return
            self.answered[text] = answer["translatedText"]


def fake_server(seconds):
    """Start a server whose network takes so many seconds to open."""
    command = [sys.executable, "-m", "tests.serving.server.fake_server", str(seconds)]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen(command, cwd=ROOT, **pipes)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_under_load_loses_nothing(name):
    with fake_server(0) as server:
        port = port_of(server.stderr)
        wait_for(Client(port).is_listening)
        clients = [Asking(port, number) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        wait_for(lambda: sum(len(client.answered) for client in clients) > 3 * CLIENTS)
        server.send_signal(getattr(signal, name))
        for client in clients:
            client.join(30)
        said, wrong = server.communicate(timeout=30)
    assert server.returncode == 0, wrong
    assert "Traceback" not in wrong
    answered = [pair for client in clients for pair in client.answered.items()]
    for text, answer in answered:
        assert answer == text.upper()
    # every sentence that the network has read was answered
    assert sorted(json.loads(said)) == sorted(text for text, _ in answered)
    for client in clients:
        if isinstance(client.refused, tuple):
            assert client.refused == (503, "the server is stopping: ask another one")
        else:
            assert isinstance(client.refused, ConnectionError)
    assert not Client(port).is_listening()


def test_a_server_that_is_not_ready_stops_at_once():
    with fake_server(60) as server:
        assert server.stderr.readline() == "opening\n"
        server.send_signal(signal.SIGTERM)
        said, wrong = server.communicate(timeout=20)
    assert (server.returncode, said, wrong) == (0, "", "")


def test_a_port_that_is_taken_is_told_before_a_network_is_opened():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["serve", "no such folder", "--port", str(port)])
    assert result.exit_code == 1
    assert f"not served: cannot listen at 127.0.0.1:{port}" in result.output
    assert os.strerror(errno.EADDRINUSE) in result.output
    assert "choose another --host or --port" in result.output


def test_a_host_that_does_not_exist_is_told():
    result = CliRunner().invoke(app, ["serve", "no such folder", "--host", "no.such.host.invalid"])
    assert result.exit_code == 1
    assert "not served: cannot listen at no.such.host.invalid:8000" in result.output
