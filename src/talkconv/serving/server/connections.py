"""Connections that give up clients which send or read too slowly. uvicorn alone would wait."""

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def connection_class(seconds: float) -> type[H11Protocol]:
    """Return a protocol for uvicorn whose clients have `seconds` for each of three things.

    A client must begin its first request in this time, finish a request that it has begun, and
    read some more of an answer that does not fit into the buffers. The application itself answers
    a slow body with 408; here a connection is closed on which nothing is being answered.
    """

    class ImpatientProtocol(H11Protocol):
        """Handles one connection, which a timer closes when its client is too slow."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.request_timer = Timer(self.loop, seconds, self.close_if_idle)
            self.answer_timer = Timer(self.loop, seconds, self.abort_if_unread)
            self.unsent = 0
            self.request_timer.start()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            # in these two states the request of the client has not come as a whole
            if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
                self.request_timer.start()
            else:
                self.request_timer.stop()

        def pause_writing(self) -> None:
            super().pause_writing()
            self.unsent = self.transport.get_write_buffer_size()
            self.answer_timer.start()

        def resume_writing(self) -> None:
            super().resume_writing()
            self.answer_timer.stop()

        def connection_lost(self, exc: Exception | None) -> None:
            self.request_timer.stop()
            self.answer_timer.stop()
            super().connection_lost(exc)

        def close_if_idle(self) -> None:
            """Close the connection unless a request is being answered."""
            # uvicorn sets the cycle when the headers of a request have come
            cycle: Any = self.cycle
            if cycle is None or cycle.response_complete:
                self.transport.close()

        def abort_if_unread(self) -> None:
            """End the connection if its client has read nothing since the timer was started."""
            unsent = self.transport.get_write_buffer_size()
            if unsent < self.unsent:
                self.unsent = unsent
                self.answer_timer.start()
            else:
                # close() would wait until the client has read what is in the buffers
                self.transport.abort()

    return ImpatientProtocol


class Timer:
    """Calls a function some seconds after it was started, unless it is stopped before."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, call: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._seconds = seconds
        self._call = call
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start to count; a timer that is counting goes on as it is."""
        if self._handle is None:
            self._handle = self._loop.call_later(self._seconds, self._end)

    def stop(self) -> None:
        """Stop to count."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _end(self) -> None:
        self._handle = None
        self._call()
