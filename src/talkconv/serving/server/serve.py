"""`talkconv serve`: starts the server, and stops it without losing what was accepted."""

import logging
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from rich.console import Console
from rich.markup import escape
from uvicorn.protocols.http.h11_impl import H11Protocol

from talkconv.messages import one_message
from talkconv.serving.server.application import Application
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
    console = Console(stderr=True)
    with console.status("opening the network"):
        service = Service(open_engine(folder, model, threads), settings)
    server = Server(Application(service), settings)
    logging.getLogger("talkconv.serve").addHandler(logging.StreamHandler())
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    console.print(
        f"serving {escape(str(folder))} at http://{escape(host)}:{settings.port} "
        "(Ctrl-C stops it; /docs describes the interface)",
        highlight=False,
        soft_wrap=True,
    )
    server.run()


class Server(uvicorn.Server):
    """A uvicorn server that refuses new requests as soon as it is told to stop."""

    def __init__(self, application: Application, settings: ServerSettings) -> None:
        self.application = application
        super().__init__(
            uvicorn.Config(
                application.asgi(),
                host=settings.host,
                port=settings.port,
                http=_protocol(settings.read_timeout),
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


def _protocol(seconds: float) -> type[H11Protocol]:
    class PatientForSeconds(H11Protocol):
        """Closes a connection whose first request does not begin in time: uvicorn would wait."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._hurry = self.loop.call_later(seconds, self._close_idle)

        def connection_lost(self, exc: Exception | None) -> None:
            self._hurry.cancel()
            super().connection_lost(exc)

        def _close_idle(self) -> None:
            cycle: Any = self.cycle
            # there is no cycle before the headers of a request have come
            if cycle is None and not self.transport.is_closing():
                self.transport.close()

    return PatientForSeconds
