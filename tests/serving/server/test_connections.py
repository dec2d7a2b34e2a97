"""Clients that send or read slowly lose their connection; the others do not notice."""

import json
import socket
import time

import pytest

from tests.serving.server.cases import FakeEngine, running, wait_for

HEAD = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
BODY = json.dumps({"q": "a", "target": "en"}).encode()
REQUEST = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.fixture(scope="module")
def client():
    with running(FakeEngine(), read_timeout=0.5, max_body=20_000_000) as client:
        yield client


def open_connections(client):
    return len(client.server.server_state.connections)


def connect(client):
    return socket.create_connection(("127.0.0.1", client.port), timeout=20)


def is_answered(slow):
    """Send a whole request, read the whole answer, and tell whether it is one."""
    slow.sendall(REQUEST)
    found = b""
    while not found.endswith(b"}"):
        found += slow.recv(10_000)
    return b" 200 " in found


def drip(slow, data, seconds=10.0):
    """Send a byte now and then; return the seconds until the server closes the connection."""
    began = time.monotonic()
    slow.settimeout(0.05)
    for byte in data:
        try:
            slow.sendall(bytes([byte]))
            if slow.recv(10_000) == b"":
                break
        except TimeoutError:
            pass
        except ConnectionError:
            break
        assert time.monotonic() - began < seconds, "the server did not close the connection"
    return time.monotonic() - began


@pytest.mark.parametrize("requests_before", [0, 1, 2])
def test_headers_that_come_byte_by_byte_are_not_waited_for(client, requests_before):
    with connect(client) as slow:
        for _ in range(requests_before):
            assert is_answered(slow)
        assert drip(slow, HEAD * 4) < 5
    assert client.translate("ok")[0] == 200


def test_a_body_that_was_refused_is_not_read_for_ever(client):
    with connect(client) as slow:
        slow.sendall(HEAD + b"Content-Length: 999999999\r\n\r\n")
        wait_for(lambda: b" 408 " in slow.recv(10_000))
        assert drip(slow, b"x" * 400) < 5
    assert client.translate("ok")[0] == 200


def test_a_client_that_does_not_read_its_answer_is_given_up(client):
    wait_for(lambda: open_connections(client) == 0)
    # more than the buffers of both sides hold; spaces cost the server nothing but their bytes
    body = json.dumps({"q": " " * 12_000_000, "target": "en"}).encode()
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", client.port))
        slow.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        wait_for(lambda: open_connections(client) == 1)
        wait_for(lambda: open_connections(client) == 0)
    assert client.translate("ok")[0] == 200


def test_a_client_that_reads_at_its_own_pace_gets_a_whole_answer(client):
    text = " " * 12_000_000
    body = json.dumps({"q": text, "target": "en"}).encode()
    with connect(client) as slow:
        slow.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        found = bytearray()
        while part := slow.recv(1_000_000):
            found += part
            time.sleep(0.05)
    answer = json.loads(bytes(found).split(b"\r\n\r\n", 1)[1])
    assert answer == {
        "translatedText": text,
        "detectedLanguage": {"confidence": 100, "language": "de"},
    }


def test_a_connection_may_be_used_again_after_a_pause(client):
    with connect(client) as slow:
        for _ in range(2):
            assert is_answered(slow)
            # longer than a request may take to come, shorter than a connection stays open
            time.sleep(0.7)
