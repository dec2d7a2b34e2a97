"""The middleware of the server: it sets headers, counts requests, and answers failures."""

import logging
import time
from collections.abc import Collection

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from talkconv.serving.server.metrics import ServerMetrics

_LOG = logging.getLogger("talkconv.serve")
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        b"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


class SecurityHeaders:
    """Adds the headers that keep a browser from doing more than the page needs."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS.items()]
            await send(message)

        await self.app(scope, receive, send_with_headers)


class CountedRequests:
    """Counts requests by path and status, and how long they take."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics, paths: Collection[str]) -> None:
        self.app = app
        self.metrics = metrics
        self.paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def send_and_note(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        # a client chooses the path, and must not fill the memory with new ones
        path = scope["path"] if scope["path"] in self.paths else "other"
        try:
            await self.app(scope, receive, send_and_note)
        finally:
            self.metrics.requests.labels(path, str(status)).inc()
            self.metrics.seconds.labels(path).observe(time.monotonic() - began)


class AnsweredFailures:
    """Answers a request whose handler failed, so that it gets the headers and is counted.

    Starlette's own handler of all exceptions stands outside of every other middleware.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        except Exception as error:
            if has_begun or scope["type"] != "http":
                raise
            _LOG.error("a request failed", exc_info=error)
            answer = JSONResponse({"error": "the server failed; its log says why"}, 500)
            await answer(scope, receive, send)
