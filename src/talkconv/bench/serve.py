"""`talkconv bench serve`: hundreds of clients at once against a server, over loopback."""

import contextlib
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import psutil
import typer
from rich.console import Console
from rich.table import Table

from talkconv.bench.server_clients import (
    Asked,
    Counts,
    Interface,
    ask_at_once,
    ask_one_by_one,
    ask_together,
    counts_of,
    foreign_answers,
    interface_of,
    unexplained,
)
from talkconv.data.lines import read_lines
from talkconv.machine import write_results
from talkconv.messages import one_message

# how many different texts are sent, and how many of them are read together at most
TEXTS, BATCH = 1000, 32
# how often a text with the answer of another one is asked for again
ROUNDS = 30
PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class ServerLoad:
    """The measured numbers. Seconds are those of a client, from its request to the answer."""

    texts: int
    clients: int
    counts: Counts
    # texts whose answer is another one in a request of BATCH texts than alone
    differing_in_batch: int
    texts_per_second_alone: float
    texts_per_second_at_once: float
    # by percentile
    seconds: dict[str, float]
    # the memory of the server before and after the requests of all clients, in bytes
    memory_before: int
    memory_after: int


def bench_serve(
    folder: Annotated[Path, typer.Argument(help="A run, an export, or a model's folder.")],
    lines: Annotated[
        Path, typer.Argument(help=f"Texts to send, one a line; at most {TEXTS} are used.")
    ],
    clients: Annotated[int, typer.Option(min=1, help="Clients at the same time.")] = 200,
    requests: Annotated[int, typer.Option(min=1, help="Requests of all clients.")] = 10_000,
    model: Annotated[
        str | None, typer.Option(help="The network, as `talkconv serve` takes it.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the server.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="A JSON file to write; without it nothing is written.")
    ] = None,
) -> None:
    """Start a server, ask it with many clients at once, and count what is lost or mixed up."""
    console = Console()
    options = ["--model", model] if model else []
    options += ["--threads", str(threads)] if threads else []
    with one_message("not measured"):
        texts = [line for line in read_lines(lines) if line.strip()][:TEXTS]
        if not texts:
            raise ValueError(f"{lines} must have lines of text, got none")
        with started(folder, options) as (port, process):
            load = measure_load(interface_of(port), process, texts, clients, requests)
    console.print(load_table(load))
    if out is not None:
        write_results(out, asdict(load))
        console.print(f"written to {out}")
    if load.counts.lost or load.counts.mixed_up or load.counts.foreign:
        raise typer.Exit(1)


@contextlib.contextmanager
def started(folder: Path, options: Sequence[str]) -> Iterator[tuple[int, psutil.Process]]:
    """Run `talkconv serve` in a process of its own; yield its port and the process."""
    command = [sys.executable, "-m", "talkconv", "serve", str(folder), "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8") as server:
        assert server.stderr is not None
        said = ""
        for line in server.stderr:
            said += line
            if found := re.search(r" at http://[^ ]+:(\d+) ", line):
                break
        else:
            raise ValueError(f"the server did not start:\n{said.strip()}")
        # a server whose messages nobody reads would wait some day until it can write them
        reader = threading.Thread(target=server.stderr.read, daemon=True)
        reader.start()
        port = int(found[1])
        try:
            _wait_for_listener(port)
            yield port, psutil.Process(server.pid)
        finally:
            server.terminate()
            reader.join()


def _wait_for_listener(port: int, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def measure_load(
    interface: Interface,
    process: psutil.Process,
    texts: Sequence[str],
    clients: int,
    requests: int,
) -> ServerLoad:
    """Ask for each text alone, then for many in a request, then with many clients at once."""
    # the first call of a network is slower than the others
    ask_one_by_one(interface, texts[:1])
    began = time.perf_counter()
    one_by_one = ask_one_by_one(interface, texts)
    seconds_alone = time.perf_counter() - began
    alone = answers_by_text(one_by_one)
    together = ask_together(interface, texts, BATCH)
    before = process.memory_info().rss
    began = time.perf_counter()
    asked = ask_at_once(interface, texts, clients=clients, requests=requests)
    seconds = time.perf_counter() - began
    after = process.memory_info().rss
    suspects = foreign_answers(asked, alone)
    left = unexplained(interface, texts, alone, suspects, size=BATCH, rounds=ROUNDS)
    taken = np.percentile([each.seconds for each in asked], PERCENTILES)
    return ServerLoad(
        texts=len(texts),
        clients=clients,
        counts=counts_of(asked, alone, foreign=len(left)),
        differing_in_batch=sum(a != b for a, b in zip(alone, together, strict=True)),
        texts_per_second_alone=len(texts) / seconds_alone,
        texts_per_second_at_once=len(asked) / seconds,
        seconds={f"{share}": float(each) for share, each in zip(PERCENTILES, taken, strict=True)},
        memory_before=before,
        memory_after=after,
    )


def answers_by_text(asked: Sequence[Asked]) -> list[str]:
    """Return the answer to each text; every text must have been answered."""
    wrong = [each.status for each in asked if each.status != 200]
    if wrong:
        raise ValueError(
            f"the server must answer every text, got the status {wrong[0]} for {len(wrong)} of "
            f"{len(asked)}: are there lines with more tokens than it accepts?"
        )
    return [each.answer for each in sorted(asked, key=lambda each: each.text)]


def load_table(load: ServerLoad) -> Table:
    """Return what was measured as a table."""
    table = Table(
        title=f"{load.clients} clients at once, {load.counts.requests} requests, "
        f"{load.texts} different texts",
        title_justify="left",
        show_header=False,
    )
    table.add_column()
    table.add_column(justify="right")
    table.add_row("requests that were lost", str(load.counts.lost))
    table.add_row("answers that belong to another client", str(load.counts.mixed_up))
    table.add_row("answers that differ from those of a text alone", str(load.counts.differing))
    table.add_row("of these, answers that only another text gets", str(load.counts.foreign))
    table.add_row(
        f"texts of {load.texts} whose answer differs in a request of {BATCH}",
        str(load.differing_in_batch),
    )
    table.add_row("texts a second, one after the other", f"{load.texts_per_second_alone:.1f}")
    table.add_row("texts a second, all clients", f"{load.texts_per_second_at_once:.1f}")
    for share, seconds in load.seconds.items():
        table.add_row(f"milliseconds of {share} % of the requests", f"{1e3 * seconds:.0f}")
    table.add_row("memory of the server before", f"{load.memory_before / 2**20:.1f} MiB")
    table.add_row("memory of the server after", f"{load.memory_after / 2**20:.1f} MiB")
    return table
