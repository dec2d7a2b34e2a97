"""`talkconv serve`: starts the server, and stops it without losing what was accepted."""

import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from rich.console import Console
from rich.markup import escape

from talkconv.messages import one_message
from talkconv.serving.server.application import Application
from talkconv.serving.server.connections import connection_class
from talkconv.serving.server.open_engine import open_engine
from talkconv.serving.server.server_settings import ServerSettings
from talkconv.serving.server.service import Service


def serve_command(
    folder: Path, options: Mapping[str, Any], *, model: str | None, threads: int | None
) -> None:
    """Run serve() for the command line; `options` are the fields of ServerSettings."""
    with one_message("not served"):
        serve(folder, ServerSettings(**options), model=model, threads=threads)


def serve(
    folder: Path,
    settings: ServerSettings,
    *,
    model: str | None = None,
    threads: int | None = None,
) -> None:
    """Serve a run or an export until the process is told to stop."""
    with handled(_exit, signal.SIGTERM), bound_socket(settings.host, settings.port) as listener:
        console = Console(stderr=True)
        with console.status("opening the network"):
            service = Service(open_engine(folder, model, threads), settings)
        server = Server(Application(service), settings)
        logging.getLogger("talkconv.serve").addHandler(logging.StreamHandler())
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        console.print(
            f"serving {escape(str(folder))} at http://{escape(host)}:{listener.getsockname()[1]} "
            "(Ctrl-C stops it; /docs describes the interface)",
            highlight=False,
            soft_wrap=True,
        )
        # uvicorn raises the signal again when it has stopped; without a handler the exit code would
        # be that of a process that was killed, although nothing was lost
        with handled(server.handle_exit, signal.SIGINT, signal.SIGTERM):
            server.run([listener])


@contextlib.contextmanager
def handled(
    handler: Callable[[int, FrameType | None], object], *signals: signal.Signals
) -> Iterator[None]:
    """Let a function handle signals within a block."""
    before = {each: signal.signal(each, handler) for each in signals}
    try:
        yield
    finally:
        for each, other in before.items():
            signal.signal(each, other)


def _exit(sig: int, frame: FrameType | None) -> None:
    """End a process that serves nothing yet; the first one of a container ignores other signals."""
    raise SystemExit(0)


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket that has an address, a free port if `port` is 0, and does not listen yet.

    A port that is taken is told before a network is opened, which takes seconds. Clients are
    refused until the server listens, so that they do not wait for the network.
    """
    with contextlib.ExitStack() as opened:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            made = opened.enter_context(socket.socket(family, kind, protocol))
            if os.name == "posix":
                # a server may start again at once where another one has just stopped
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except OSError as error:
            raise OSError(
                f"cannot listen at {host}:{port} ({error.strerror}): choose another --host or "
                "--port"
            ) from error
        # it stays open
        opened.pop_all()
        return made


class Server(uvicorn.Server):
    """A uvicorn server that refuses new requests as soon as it is told to stop."""

    def __init__(self, application: Application, settings: ServerSettings) -> None:
        self.application = application
        super().__init__(
            uvicorn.Config(
                application.asgi(),
                host=settings.host,
                port=settings.port,
                http=connection_class(settings.read_timeout),
                ws="none",
                log_level="warning",
                access_log=False,
                server_header=False,
                limit_concurrency=settings.connections,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=max(1, round(settings.drain)),
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Refuse new requests and answer those that were accepted; a second Ctrl-C ends at once."""
        self.application.drain()
        super().handle_exit(sig, frame)
