"""Clients that ask a server of `talkconv serve`, many at once, each in a thread of its own."""

import http.client
import json
import random
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
# a mark is a number in binary, of characters that a server leaves as they are
_BITS = str.maketrans("01", " \t")
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
    # whether the answer has the mark of another request
    is_of_another: bool = False


@dataclass(frozen=True)
class Counts:
    """The results of many clients, compared with the answers to the same texts one by one."""

    requests: int
    # requests without an answer, or with another status than 200
    lost: int
    # answers with the mark of another request: they belong to another client
    mixed_up: int
    # answers that are not those of the text alone: the network rounds otherwise in another batch
    differing: int
    # those of them that are the answer to another text, and that the text itself did not get when
    # it was asked for again without that other text
    foreign: int


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
        part = texts[begin : begin + size]
        marked = [with_mark(text, begin + number) for number, text in enumerate(part)]
        status, answers = client.ask(marked)
        found += map(without_mark, answers) if status == 200 else [None] * len(part)
    client.close()
    return found


def with_mark(text: str, number: int) -> str:
    """Return a text with a last line of spaces and tabs, which are a number.

    A server keeps the spaces between sentences, and the network does not read them. So the answer
    has the same last line, and can be recognized even if all outputs of a network are alike.
    """
    return f"{text}\n{_mark(number)}"


def without_mark(answer: str) -> str:
    """Return an answer without its last line."""
    return answer.rpartition("\n")[0]


def _mark(number: int) -> str:
    return format(number, "b").translate(_BITS)


def ask_at_once(
    interface: Interface, texts: Sequence[str], *, clients: int, requests: int
) -> list[Asked]:
    """Let many clients send `requests` texts in all, each the next one as soon as it is answered.

    The texts are taken in turn. The list has one entry for each request, in no order.
    """
    numbers = _Locked(iter(range(requests)))
    found: list[list[Asked]] = [[] for _ in range(clients)]
    threads = [
        threading.Thread(target=_work, args=(interface, texts, numbers, each)) for each in found
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [asked for each in found for asked in each]


def counts_of(asked: Sequence[Asked], alone: Sequence[Any], foreign: int) -> Counts:
    """Compare answers with those that each text had alone; `foreign` of them are unexplained."""
    answered = [each for each in asked if each.status == 200]
    return Counts(
        requests=len(asked),
        lost=len(asked) - len(answered),
        mixed_up=sum(each.is_of_another for each in answered),
        differing=sum(each.answer != alone[each.text] for each in answered),
        foreign=foreign,
    )


def foreign_answers(asked: Sequence[Asked], alone: Sequence[Any]) -> list[Asked]:
    """Return the answers that are not the text's own, but that of another text."""
    known = set(alone)
    return [each for each in asked if each.answer != alone[each.text] and each.answer in known]


def unexplained(
    interface: Interface,
    texts: Sequence[str],
    alone: Sequence[Any],
    suspects: Sequence[Asked],
    *,
    size: int,
    rounds: int,
) -> list[Asked]:
    """Ask again for the texts of foreign answers, and return the answers that did not come again.

    A network in int8 rounds differently in each batch, so that a text may get the answer of
    another one by itself. It is proven to do so if it gets this answer in a request in which no
    other text has it. Each round sends the texts in other groups of `size`.
    """
    left = list(suspects)
    order = random.Random(0)
    for _ in range(rounds):
        wanted: dict[int, set[Any]] = {}
        for each in left:
            wanted.setdefault(each.text, set()).add(each.answer)
        proven = set()
        for group in _groups(wanted, alone, size, order):
            answers = ask_together(interface, [texts[number] for number in group], size)
            proven |= set(zip(group, answers, strict=True))
        left = [each for each in left if (each.text, each.answer) not in proven]
    return left


def _groups(
    wanted: dict[int, set[Any]], alone: Sequence[Any], size: int, order: random.Random
) -> list[list[int]]:
    """Put texts into groups of `size`, in which no text has the answer that another one wants."""
    groups: list[list[int]] = []

    def fits(number: int, group: list[int]) -> bool:
        return len(group) < size and not any(
            alone[number] in wanted.get(other, ()) or alone[other] in wanted.get(number, ())
            for other in group
        )

    for number in order.sample(sorted(wanted), len(wanted)):
        group = next((group for group in groups if fits(number, group)), None)
        if group is None:
            groups.append([number])
        else:
            group.append(number)
    # a text needs others beside it, so that the network rounds differently
    for group in groups:
        for number in order.sample(range(len(alone)), min(2 * size, len(alone))):
            if number not in group and number not in wanted and fits(number, group):
                group.append(number)
    return groups


def _work(
    interface: Interface, texts: Sequence[str], numbers: Iterator[int], found: list[Asked]
) -> None:
    client = Client(interface)
    for number in numbers:
        text = number % len(texts)
        began = time.perf_counter()
        status, answer = client.ask(with_mark(texts[text], number))
        seconds = time.perf_counter() - began
        if status != 200:
            found.append(Asked(text, seconds, status, answer))
            continue
        is_of_another = not answer.endswith(f"\n{_mark(number)}")
        found.append(Asked(text, seconds, status, without_mark(answer), is_of_another))
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
