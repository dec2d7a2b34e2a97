"""Tests the answers of a server over a real socket, with a fake network."""

import json
import re
import socket
import threading

import pytest

from tests.serving.server.cases import FakeEngine, running, wait_for


@pytest.fixture(scope="module")
def client():
    limits = dict(max_body=20_000, max_sentences=8, max_tokens=50, read_timeout=0.5)
    with running(FakeEngine(), **limits) as client:
        yield client


def test_a_text_and_a_list_of_texts_are_translated_in_order(client):
    assert client.translate("Guten Tag. Na?") == (200, {"translatedText": "GUTEN TAG. NA?"})
    assert client.translate(["a", "", "b\n\nc "]) == (200, {"translatedText": ["A", "", "B\n\nC "]})
    assert client.translate([]) == (200, {"translatedText": []})


def test_a_form_is_read_as_libretranslates_clients_send_it(client):
    kind = "application/x-www-form-urlencoded"
    body = "q=sch%C3%B6n+ja&source=de&target=en"
    status, _, answer = client.ask("POST", "/translate", body, kind)
    assert (status, json.loads(answer)) == (200, {"translatedText": "SCHÖN JA"})


def test_alternatives_and_auto_are_answered(client):
    status, answer = client.post("/translate", q="a", source="auto", target="en", alternatives=2)
    assert status == 200
    assert answer["alternatives"] == ["A1", "A2"]
    assert answer["detectedLanguage"]["language"] == "de"
    assert client.translate("a", alternatives=9)[0] == 400


def test_html_keeps_its_tags(client):
    status, answer = client.translate("<p>a &lt; b<br>c</p>", format="html")
    assert (status, answer["translatedText"]) == (200, "<p>A &lt; B<br>C</p>")


@pytest.mark.parametrize(
    ("body", "kind", "status", "message"),
    [
        (b"{", "application/json", 400, "must be JSON"),
        (b"[" * 10_000, "application/json", 400, "must be JSON"),
        (b"[]", "application/json", 400, "must be a JSON object"),
        (b"", "application/json", 400, "must be JSON"),
        (b'{"target": "en"}', "application/json", 400, "q: Field required"),
        (b'{"q": 5, "target": "en"}', "application/json", 400, "q: "),
        (b'{"q": null, "target": "en"}', "application/json", 400, "q: "),
        (b'{"q": ["a", 5], "target": "en"}', "application/json", 400, "q"),
        (b'{"q": {"a": 1}, "target": "en"}', "application/json", 400, "q: "),
        (b'{"q": "a", "target": 7}', "application/json", 400, "target: "),
        (b'{"q": "a", "target": "en", "format": "pdf"}', "application/json", 400, "format: "),
        (
            b'{"q": "a", "target": "en", "alternatives": -1}',
            "application/json",
            400,
            "alternatives",
        ),
        (b'{"q": "\xff", "target": "en"}', "application/json", 400, "UTF-8"),
        (b'{"q": "\\ud800", "target": "en"}', "application/json", 400, "lone surrogate"),
        (b"q=%ff&target=en", "application/x-www-form-urlencoded", 400, "UTF-8"),
        (b"q=a", "text/plain", 415, "Content-Type must be"),
        (b'{"q": "a", "source": "fr", "target": "en"}', "application/json", 400, "from de to en"),
        (b'{"q": "a", "target": "../../etc/passwd"}', "application/json", 400, "from de to en"),
        (b"x" * 30_000, "application/json", 413, "at most 20000 bytes"),
        (b'{"q": "%s", "target": "en"}' % (b"a. B" * 20), "application/json", 413, "sentences"),
        (
            b'{"q": "%s", "target": "en"}' % (b"a" * 60),
            "application/json",
            413,
            "at most 50 tokens",
        ),
        (b'{"q": "%s", "target": "en"}' % (b"a" * 9_000), "application/json", 413, "50 tokens"),
    ],
)
def test_a_bad_request_is_told(client, body, kind, status, message):
    found, headers, answer = client.ask("POST", "/translate", body, kind)
    assert found == status
    assert message in json.loads(answer)["error"]
    assert b"Traceback" not in answer
    assert b"/" not in answer.replace(b"application/", b"").replace(b"../../etc/passwd", b"")
    assert headers["x-content-type-options"] == "nosniff"
    # the server goes on
    assert client.translate("ok")[0] == 200


@pytest.mark.parametrize("text", ["a\0b", "\n" * 9_000, " " * 9_000, "a\r\nb", "\ufeffä", "🙂"])
def test_strange_text_comes_back_in_place(client, text):
    assert client.translate(text) == (200, {"translatedText": text.upper()})


def test_other_paths_and_methods_are_refused(client):
    for path in ("/nothing", "/../secret", "/page.css/../x", "/summarize", "/%2e%2e/etc/passwd"):
        status, answer = client.get(path)
        assert status == 404
        assert answer["error"].startswith("there is nothing")
    assert client.get("/translate")[0] == 405


def test_it_tells_about_itself(client):
    assert client.get("/health") == (200, {"status": "ok"})
    assert client.get("/languages") == (
        200,
        [
            {"code": "de", "name": "German", "targets": ["en"]},
            {"code": "en", "name": "English", "targets": []},
        ],
    )
    client.translate("x")
    metrics = client.ask("GET", "/metrics")[2].decode()
    assert re.search(r'talkconv_requests_total\{path="/translate",status="200"\} [1-9]', metrics)
    assert "talkconv_waiting_sentences 0.0" in metrics
    client.get("/some-path-that-a-client-made-up")
    assert "made-up" not in client.ask("GET", "/metrics")[2].decode()


def test_the_interface_is_described(client):
    _, found = client.get("/openapi.json")
    assert found["openapi"] == "3.1.0"
    body = found["paths"]["/translate"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-www-form-urlencoded"}
    schema = found["components"]["schemas"]["TranslateRequest"]
    assert set(schema["required"]) == {"q", "target"}
    status, headers, page = client.ask("GET", "/docs")
    assert status == 200
    assert b"POST /translate" in page
    assert "default-src 'none'" in headers["content-security-policy"]


def test_a_text_is_streamed_as_it_is_written(client):
    _, headers, answer = client.ask(
        "POST", "/stream", json.dumps({"q": "ab. Cd.", "alternatives": 1})
    )
    assert headers["content-type"] == "application/x-ndjson"
    # nginx would pass it on when it is complete
    assert headers["x-accel-buffering"] == "no"
    first, *items, last = map(json.loads, answer.splitlines())
    assert first == {"parts": ["", "ab.", " ", "Cd.", ""]}
    assert last == {"done": True}
    assert {"sentence": 0, "text": "A"} in items
    ends = [item for item in items if "outputs" in item]
    assert ends[1] == {
        "sentence": 1,
        "outputs": [{"text": "CD.", "score": 0.0}, {"text": "CD.1", "score": -1.0}],
    }
    assert client.post("/stream", q=["a"])[0] == 400
    assert client.post("/stream", q="a. B" * 20)[0] == 413


def test_a_network_without_windows_says_so(client):
    assert client.post("/windows", q="a", output="b")[0] == 404


def test_a_slow_client_is_given_up(client):
    head = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    for sent in (b"", b"POST /trans", head + b"Content-Length: 50\r\n\r\n{"):
        with socket.create_connection(("127.0.0.1", client.port), timeout=20) as slow:
            slow.sendall(sent)
            answer = slow.recv(10_000)
            assert (b" 408 " in answer) == (len(sent) > 20)
    assert client.translate("ok")[0] == 200


def test_the_key_is_asked_for():
    with running(FakeEngine(), api_key="geheim") as client:
        for key in ({}, {"api_key": "falsch"}, {"api_key": ""}, {"api_key": 5}, {"api_key": "ü"}):
            status, answer = client.translate("a", **key)
            assert (status, answer) == (403, {"error": "this server needs its api_key"})
        assert client.translate("a", api_key="geheim")[0] == 200
        assert client.post("/stream", q="a")[0] == 403
        assert client.get("/health")[0] == 200
        assert b'id="key"' in client.ask("GET", "/")[2]


def test_the_time_of_a_refusal_tells_nothing_about_the_key(monkeypatch):
    compared = []

    def compare(ours, theirs):
        compared.append((len(ours), len(theirs)))
        return ours == theirs

    monkeypatch.setattr("talkconv.serving.server.reading.hmac.compare_digest", compare)
    with running(FakeEngine(), api_key="geheim") as client:
        for key in ("", "g", "geheim", "x" * 900):
            assert client.translate("a", api_key=key)[0] == (200 if key == "geheim" else 403)
    # no key is refused by another comparison, and all are of one length
    assert compared == [(32, 32)] * 4


def test_pages_of_other_origins_may_ask_only_if_told(client):
    origin = {"Origin": "https://example.org"}
    assert "access-control-allow-origin" not in client.ask("GET", "/health", headers=origin)[1]
    with running(FakeEngine(), allow_origin="https://example.org") as other:
        headers = other.ask("GET", "/health", headers=origin)[1]
        assert headers["access-control-allow-origin"] == "https://example.org"


@pytest.mark.parametrize(
    ("task", "path"), [("summarization", "/summarize"), ("language_modelling", "/complete")]
)
def test_each_task_has_its_path(task, path):
    with running(FakeEngine(task)) as client:
        assert client.post(path, q="a. B\nc") == (200, {"outputText": "A. B\nC"})
        assert client.post(path, q=["a"], alternatives=1)[1] == {
            "outputText": ["A"],
            "alternatives": [["A1"]],
        }
        assert client.translate("a")[0] == 404
        assert client.get("/languages") == (200, [])
        if path == "/complete":
            assert client.post(path, q="a", max_length=10**9)[0] == 400
            assert client.post(path, q="a", temperature=0.5, seed=3, top_p=2)[0] == 400
            assert client.post(path, q="a", temperature=0.5, seed=3)[0] == 200


def test_a_failure_is_told_without_its_traceback(caplog):
    def fail(batch):
        raise RuntimeError("a secret path: /home/me")

    with running(FakeEngine(work=fail)) as client:
        body = json.dumps({"q": "a", "target": "en"})
        status, headers, answer = client.ask("POST", "/translate", body)
        assert status == 500
        assert json.loads(answer) == {"error": "the server failed; its log says why"}
        assert headers["x-content-type-options"] == "nosniff"
        assert caplog.text.count("RuntimeError: a secret path") == 1
        metrics = client.ask("GET", "/metrics")[2].decode()
        assert 'talkconv_requests_total{path="/translate",status="500"} 1.0' in metrics


def test_a_failure_while_the_page_reads_is_told_and_logged(caplog):
    def fail(batch):
        raise RuntimeError("a secret path: /home/me")

    with running(FakeEngine(work=fail)) as client:
        _, _, lines = client.ask("POST", "/stream", json.dumps({"q": "a"}))
        assert json.loads(lines.splitlines()[-1]) == {
            "error": "the sentence could not be answered: try again"
        }
        assert "RuntimeError: a secret path" in caplog.text


def test_a_full_queue_refuses_and_says_when_to_come_again():
    go = threading.Event()
    with running(FakeEngine(work=lambda batch: go.wait(20)), queue=4, max_sentences=4) as client:
        threads = [threading.Thread(target=client.translate, args=("a",)) for _ in range(5)]
        waiting = client.server.application.service.batcher
        threads[0].start()
        wait_for(lambda: client.server.application.service.engine.batches)
        for thread in threads[1:]:
            thread.start()
        wait_for(lambda: waiting.waiting == 4)
        status, headers, body = client.ask(
            "POST", "/translate", json.dumps({"q": "a", "target": "en"})
        )
        assert status == 503
        assert int(headers["retry-after"]) >= 1
        assert "4 sentences are waiting" in json.loads(body)["error"]
        go.set()
        for thread in threads:
            thread.join()
        assert client.translate("a")[0] == 200


def test_a_client_that_goes_away_frees_its_place():
    go = threading.Event()
    with running(FakeEngine(work=lambda batch: go.wait(20))) as client:
        engine = client.server.application.service.engine
        waiting = client.server.application.service.batcher
        first = threading.Thread(target=client.translate, args=("a",))
        first.start()
        wait_for(lambda: engine.batches)
        body = json.dumps({"q": "gone", "target": "en"}).encode()
        head = "POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", client.port)) as leaving:
            leaving.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            wait_for(lambda: waiting.waiting == 1)
        wait_for(lambda: waiting.waiting == 0)
        go.set()
        first.join()
        client.translate("b")
        assert ["gone"] not in engine.batches


def test_an_answer_that_takes_too_long_is_given_up():
    go = threading.Event()
    with running(FakeEngine(work=lambda batch: go.wait(20)), timeout=0.2) as client:
        status, answer = client.translate("a")
        assert (status, answer["error"]) == (504, "the answer took more than 0.2 seconds")
        _, _, lines = client.ask("POST", "/stream", json.dumps({"q": "a"}))
        assert json.loads(lines.splitlines()[-1]) == {"error": "the answer took too long"}
        go.set()


def test_requests_are_batched_and_nobody_gets_anothers_answer():
    engine = FakeEngine(work=lambda batch: threading.Event().wait(0.02))
    with running(engine, batch=8) as client:
        found = {}

        def ask(number):
            for turn in range(3):
                found[number, turn] = client.translate(f"w{number} {turn}")

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for (number, turn), (status, answer) in found.items():
        assert (status, answer["translatedText"]) == (200, f"W{number} {turn}")
    assert len(found) == 60
    assert max(map(len, engine.batches)) > 1
    assert max(map(len, engine.batches)) <= 8


def test_what_was_accepted_is_answered_when_the_server_stops():
    go = threading.Event()
    with running(FakeEngine(work=lambda batch: go.wait(20)), batch=1) as client:
        found = []
        waiting = client.server.application.service.batcher
        threads = [
            threading.Thread(target=lambda: found.append(client.translate("a"))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        wait_for(lambda: waiting.waiting == 2)
        client.server.application.drain()
        assert client.get("/health") == (503, {"status": "stopping"})
        status, answer = client.translate("b")
        assert (status, answer["error"]) == (503, "the server is stopping: ask another one")
        client.server.should_exit = True
        go.set()
        for thread in threads:
            thread.join()
        assert [status for status, _ in found] == [200] * 3
