"""Clients that ask a server of `talkconv serve`, many at once, each in a thread of its own."""

import http.client
import itertools
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# the path of each task, and the field of its answers
_ANSWERS = {
    "/translate": "translatedText",
    "/summarize": "outputText",
    "/complete": "outputText",
}
# seconds that a client waits for an answer; the server itself gives up earlier
_PATIENCE = 300.0


@dataclass(frozen=True)
class Interface:
    """The facts that a client needs to call a server: port, path, and fields of requests."""

    port: int
    path: str
    # the languages, if the server translates
    fields: dict[str, str]


@dataclass(frozen=True)
class Asked:
    """One request and what came of it."""

    # which of the texts was sent
    text: int
    seconds: float
    # the status of HTTP; 0 if the connection failed
    status: int
    answer: Any


@dataclass(frozen=True)
class Counts:
    """The results of many clients, compared with the answers to the same texts one by one."""

    requests: int
    # requests without an answer, or with another status than 200
    lost: int
    # answers that are not those of the text alone: the network rounds otherwise in another batch
    differing: int
    # those of them that are the answer to another text
    mixed_up: int


class Client:
    """A connection to a server, which stays open between requests."""

    def __init__(self, interface: Interface) -> None:
        self._interface = interface
        self._connection = _connection(interface.port)

    def ask(self, q: str | list[str]) -> tuple[int, Any]:
        """Return the status and the outputs for a text or a list of texts."""
        api = self._interface
        body = json.dumps({"q": q, **api.fields})
        try:
            self._connection.request("POST", api.path, body, {"Content-Type": "application/json"})
            answer = self._connection.getresponse()
            found = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            # the next request opens the connection again
            self._connection.close()
            return 0, None
        if answer.status != 200:
            # a server may close the connection after an error
            self._connection.close()
        return answer.status, found.get(_ANSWERS[api.path])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def interface_of(port: int) -> Interface:
    """Ask the server at a port of this machine what it offers."""
    paths = _get(port, "/openapi.json")["paths"]
    path = next(path for path in _ANSWERS if path in paths)
    if path != "/translate":
        return Interface(port, path, {})
    languages = _get(port, "/languages")
    source = next(each for each in languages if each["targets"])
    return Interface(port, path, {"source": source["code"], "target": source["targets"][0]})


def ask_one_by_one(interface: Interface, texts: Sequence[str]) -> list[Asked]:
    """Send each text when the one before it was answered."""
    return ask_at_once(interface, texts, clients=1, requests=len(texts))


def ask_together(interface: Interface, texts: Sequence[str], size: int) -> list[Any]:
    """Send `size` texts with each request, and return the answer to each text, or None."""
    client = Client(interface)
    found: list[Any] = []
    for begin in range(0, len(texts), size):
        part = list(texts[begin : begin + size])
        status, answers = client.ask(part)
        found += answers if status == 200 else [None] * len(part)
    client.close()
    return found


def ask_at_once(
    interface: Interface, texts: Sequence[str], *, clients: int, requests: int
) -> list[Asked]:
    """Let many clients send `requests` texts in all, each the next one as soon as it is answered.

    The texts are taken in turn. The list has one entry for each request, in no order.
    """
    numbers = _Locked(itertools.islice(itertools.cycle(range(len(texts))), requests))
    found: list[list[Asked]] = [[] for _ in range(clients)]
    threads = [
        threading.Thread(target=_work, args=(interface, texts, numbers, each)) for each in found
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [asked for each in found for asked in each]


def counts_of(asked: Sequence[Asked], alone: Sequence[Any]) -> Counts:
    """Compare answers with those that each text had alone."""
    known = set(alone)
    answered = [each for each in asked if each.status == 200]
    differing = [each for each in answered if each.answer != alone[each.text]]
    return Counts(
        requests=len(asked),
        lost=len(asked) - len(answered),
        differing=len(differing),
        mixed_up=sum(each.answer in known for each in differing),
    )


def _work(
    interface: Interface, texts: Sequence[str], numbers: Iterator[int], found: list[Asked]
) -> None:
    client = Client(interface)
    for number in numbers:
        began = time.perf_counter()
        status, answer = client.ask(texts[number])
        found.append(Asked(number, time.perf_counter() - began, status, answer))
    client.close()


class _Locked:
    """An iterator that several threads may share."""

    def __init__(self, items: Iterator[int]) -> None:
        self._items = items
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        with self._lock:
            return next(self._items)


def _get(port: int, path: str) -> Any:
    connection = _connection(port)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def _connection(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
