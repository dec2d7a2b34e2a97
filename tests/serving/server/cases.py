"""A server in a thread, around a network that only pretends, and a client for it."""

import contextlib
import http.client
import json
import re
import socket
import threading
import time
from dataclasses import dataclass, field

from talkconv.generation.text_generator import Output
from talkconv.runs.card import RunCard
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.serving.server.application import Application
from talkconv.serving.server.serve import Server
from talkconv.serving.server.server_settings import ServerSettings
from talkconv.serving.server.service import Service


@dataclass
class FakeModel:
    settings: GenerationSettings = field(default_factory=GenerationSettings)


class FakeEngine:
    """Answers with the words of a sentence in capitals; `work` is what it does meanwhile."""

    has_windows = False

    def __init__(self, task="translation", work=lambda batch: None):
        self.card = RunCard(task, "fake", source_lang="de", target_lang="en")
        self.model = FakeModel()
        self.work = work
        self.batches = []

    def encode(self, text):
        return [ord(char) for char in text]

    def encode_output(self, text):
        return self.encode(text)

    def check(self, options):
        if options.n_best > 5:
            raise ValueError(f"n_best must be from 1 to num_beams=5, got {options.n_best}")

    def run(self, key, payloads):
        texts = ["".join(map(chr, sentence.source)) for sentence in payloads]
        self.batches.append(texts)
        self.work(texts)
        for text, sentence in zip(texts, payloads, strict=True):
            if sentence.on_text:
                sentence.on_text(text[:1].upper())
        return [
            [Output(f"{text.upper()}{n or ''}", -float(n), [1]) for n in range(key.n_best)]
            for text in texts
        ]


class Client:
    """Asks a server over loopback."""

    def __init__(self, port):
        self.port = port

    def ask(self, method, path, body=None, kind="application/json", timeout=30, headers=None):
        """Return status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            given = {} if body is None else {"Content-Type": kind}
            connection.request(method, path, body, {**given, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def is_listening(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except ConnectionRefusedError:
            return False
        return True

    def get(self, path):
        status, _, body = self.ask("GET", path)
        return status, json.loads(body)

    def post(self, path, **fields):
        status, _, body = self.ask("POST", path, json.dumps(fields))
        return status, json.loads(body)

    def translate(self, q, **fields):
        return self.post("/translate", q=q, source="de", target="en", **fields)


@contextlib.contextmanager
def running(engine, **changes):
    """Run a server in a thread, at a port that is free; yield its client, which has the server."""
    settings = ServerSettings(port=0, **changes)
    server = Server(Application(Service(engine, settings)), settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(lambda: server.started or not thread.is_alive())
    client = Client(server.servers[0].sockets[0].getsockname()[1])
    client.server, client.thread = server, thread
    try:
        yield client
    finally:
        server.should_exit = True
        thread.join(10)


def port_of(stderr):
    """Return the port that a server names when it starts in a process of its own."""
    said = ""
    for line in stderr:
        said += line
        if found := re.search(r" at http://[^ ]+:(\d+) ", line):
            return int(found[1])
    raise AssertionError(f"the server did not start: {said}")


def wait_for(holds, seconds=20.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.01)
