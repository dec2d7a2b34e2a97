"""What docs/serve.md says about reverse proxies and replicas, with nginx and Caddy themselves."""

import json
import re
import threading

import pytest

from tests.serving.server import proxies
from tests.serving.server.cases import FakeEngine, running, wait_for
from tests.serving.server.proxies import blocks, proxy, replaced

NAMES = [
    pytest.param(
        name, marks=pytest.mark.skipif(proxies.is_missing(name), reason=f"needs {name} on PATH")
    )
    for name in ("nginx", "caddy")
]
needs_nginx = pytest.mark.skipif(proxies.is_missing("nginx"), reason="needs nginx on PATH")
SERVER = "127.0.0.1:8000"
# a server that reads one sentence, and lets one wait
ONE = dict(queue=1, max_sentences=1, batch=1)
# what the page says about a server under a path
PATH_CHANGES = {
    "nginx": [
        ("location / {", "location /translate-de/ {"),
        ("proxy_pass http://talkconv;", "proxy_pass http://talkconv/;"),
        ("location = /metrics", "location = /translate-de/metrics"),
    ],
    "caddy": [
        ("translate.example.org {", "translate.example.org {\nhandle_path /translate-de/* {"),
        ("\n}\n", "\n}\n}\n"),
    ],
}


class WaitingEngine(FakeEngine):
    """Writes the beginning of an output, then waits until it may go on."""

    def __init__(self):
        super().__init__()
        self.go = threading.Event()
        self.has_waited_in_vain = False

    def run(self, key, payloads):
        for sentence in payloads:
            if sentence.on_text:
                sentence.on_text("begin")
        found = super().run(key, payloads)
        self.has_waited_in_vain |= not self.go.wait(20)
        return found


@pytest.fixture(params=NAMES)
def config(request):
    """Return the name of a proxy and its configuration."""
    return request.param, blocks(request.param)[0]


def in_front(config, folder, server):
    """Start a proxy in front of one server."""
    name, text = config
    return proxy(name, folder, replaced(text, (SERVER, f"127.0.0.1:{server.port}")))


def full(server):
    """Return whether the queue of a server is full."""
    service = server.server.application.service
    return service.batcher.waiting == service.settings.queue


def test_requests_and_pages_go_through(config, tmp_path):
    with running(FakeEngine()) as server, in_front(config, tmp_path, server) as client:
        assert client.translate(["a", "b"]) == (200, {"translatedText": ["A", "B"]})
        form = "q=a+b&source=auto&target=en"
        _, _, body = client.ask("POST", "/translate", form, "application/x-www-form-urlencoded")
        assert json.loads(body)["translatedText"] == "A B"
        for path in ("/", "/page.css", "/windows.js", "/serve.js", "/docs"):
            status, headers, _ = client.ask("GET", path)
            assert status == 200
            assert "default-src 'none'" in headers["content-security-policy"]
        assert client.get("/health") == (200, {"status": "ok"})
        assert client.ask("GET", "/metrics")[0] == 403
        assert server.ask("GET", "/metrics")[0] == 200


def test_a_translation_is_seen_while_it_is_written(config, tmp_path):
    engine = WaitingEngine()
    with (
        running(engine) as server,
        in_front(config, tmp_path, server) as client,
        client.sent("/stream", q="a b") as respond,
    ):
        answer = respond()
        lines = [json.loads(answer.readline()) for _ in range(2)]
        assert lines == [{"parts": ["", "a b", ""]}, {"sentence": 0, "text": "begin"}]
        # what was read has passed the proxy before the network went on
        assert not engine.has_waited_in_vain
        engine.go.set()
        assert json.loads(answer.read().splitlines()[-1]) == {"done": True}


def test_large_requests_are_answered_or_refused(config, tmp_path):
    with running(FakeEngine()) as server, in_front(config, tmp_path, server) as client:
        status, answer = client.translate(" " * 990_000)
        assert (status, len(answer["translatedText"])) == (200, 990_000)
        for size in (1_000_001, 10_000_000):
            status, _, _ = client.ask("POST", "/translate", " " * size)
            assert status == 413, size
        assert client.translate("a")[0] == 200


def test_a_full_queue_is_told_and_a_client_that_goes_away_frees_its_place(config, tmp_path):
    engine = WaitingEngine()
    fields = dict(q="a", source="de", target="en")
    with (
        running(engine, **ONE) as server,
        in_front(config, tmp_path, server) as client,
        client.sent("/translate", **fields) as respond,
    ):
        wait_for(lambda: engine.batches)
        with client.sent("/translate", **fields):
            wait_for(lambda: full(server))
            status, headers, body = client.ask("POST", "/translate", json.dumps(fields))
            assert (status, headers["retry-after"]) == (503, "1")
            assert "sentences are waiting" in json.loads(body)["error"]
        wait_for(lambda: not full(server))
        assert not engine.has_waited_in_vain
        engine.go.set()
        assert respond().status == 200


def test_a_reader_of_the_page_who_leaves_frees_the_place(config, tmp_path):
    engine = WaitingEngine()
    with (
        running(engine, **ONE) as server,
        in_front(config, tmp_path, server) as client,
        client.sent("/stream", q="a") as respond,
    ):
        wait_for(lambda: engine.batches)
        with client.sent("/stream", q="b") as leave:
            leave().readline()
            assert full(server)
        wait_for(lambda: not full(server))
        assert not engine.has_waited_in_vain
        engine.go.set()
        assert b"done" in respond().read()


@needs_nginx
def test_too_many_requests_of_one_client_are_refused(tmp_path):
    config = "nginx", blocks("nginx")[0]
    with running(FakeEngine()) as server, in_front(config, tmp_path, server) as client:
        statuses = {client.ask("GET", "/health")[0] for _ in range(80)}
    assert statuses == {200, 429}


@pytest.mark.parametrize("name", NAMES)
def test_a_server_may_be_under_a_path(name, tmp_path):
    text = replaced(blocks(name)[0], *PATH_CHANGES[name])
    with running(FakeEngine()) as server, in_front((name, text), tmp_path, server) as client:
        for file in ("", "page.css", "serve.js"):
            assert client.ask("GET", f"/translate-de/{file}")[0] == 200
        answer = client.post("/translate-de/translate", q="a", source="de", target="en")
        assert answer == (200, {"translatedText": "A"})
        assert client.ask("GET", "/translate-de/metrics")[0] == 403
        assert b"talkconv" not in client.ask("GET", "/metrics")[2]


def replicas_config(ports):
    """Return nginx' configuration with the page's upstream of two replicas."""
    one, several = blocks("nginx")
    (line,) = re.findall(r"`(proxy_next_upstream [^`]*;)`", proxies.TEXT)
    site = one[one.index("limit_req_zone") :]
    text = several + site.replace("proxy_pass", f"{line}\n        proxy_pass")
    text = text.replace("rate=10r/s", "rate=10000r/s")
    for number, port in zip(("8001", "8002"), ports, strict=True):
        text = replaced(text, (f"127.0.0.1:{number}", f"127.0.0.1:{port}"))
    return text


@needs_nginx
def test_a_full_replica_lets_another_one_answer(tmp_path):
    engines = WaitingEngine(), FakeEngine()
    with running(engines[0], **ONE) as one, running(engines[1], **ONE) as other:
        threads = [threading.Thread(target=one.translate, args=("a",)) for _ in range(2)]
        for thread in threads:
            thread.start()
            wait_for(lambda: engines[0].batches)
        wait_for(lambda: full(one))
        with proxy("nginx", tmp_path, replicas_config((one.port, other.port))) as client:
            assert [client.translate("b")[0] for _ in range(20)] == [200] * 20
        engines[0].go.set()
        for thread in threads:
            thread.join()
    assert ["b"] not in engines[0].batches


@needs_nginx
def test_full_replicas_say_when_to_come_again_and_are_asked_again(tmp_path):
    engines = WaitingEngine(), WaitingEngine()
    with running(engines[0], **ONE) as one, running(engines[1], **ONE) as other:
        servers = one, other
        threads = []
        for server, engine in zip(servers, engines, strict=True):
            for _ in range(2):
                threads.append(threading.Thread(target=server.translate, args=("a",)))
                threads[-1].start()
                wait_for(lambda engine=engine: engine.batches)
            wait_for(lambda server=server: full(server))
        with proxy("nginx", tmp_path, replicas_config((one.port, other.port))) as client:
            body = json.dumps(dict(q="b", target="en"))
            for _ in range(6):
                status, headers, _ = client.ask("POST", "/translate", body)
                assert (status, headers.get("retry-after")) == (503, "1")
            for engine in engines:
                engine.go.set()
            for thread in threads:
                thread.join()
            assert client.translate("b")[0] == 200


@needs_nginx
def test_replicas_are_replaced_one_by_one_and_no_request_fails(tmp_path):
    with (
        running(FakeEngine()) as one,
        running(FakeEngine()) as other,
        proxy("nginx", tmp_path, replicas_config((one.port, other.port))) as client,
    ):
        statuses, stop = [], threading.Event()

        def ask():
            while not stop.is_set():
                statuses.append(client.translate("a")[0])

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(statuses) > 20)
        one.server.application.drain()
        one.server.should_exit = True
        one.thread.join(10)
        seen = len(statuses)
        wait_for(lambda: len(statuses) > seen + 20)
        stop.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}
