"""The ASGI application: paths, their handlers, and how an error becomes an answer."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from talkconv.conventions import LANGUAGE_MODELLING, SUMMARIZATION, TRANSLATION
from talkconv.serving.server.engine import WriteOptions
from talkconv.serving.server.languages import language_name
from talkconv.serving.server.middleware import (
    AnsweredFailures,
    CountedRequests,
    SecurityHeaders,
)
from talkconv.serving.server.openapi import Operation, openapi, openapi_page
from talkconv.serving.server.page import page, page_files
from talkconv.serving.server.problem import Problem
from talkconv.serving.server.reading import read_body, unless_gone
from talkconv.serving.server.request_models import (
    CompleteRequest,
    OutputAnswer,
    StreamRequest,
    SummarizeRequest,
    TranslateAnswer,
    TranslateRequest,
    WindowsRequest,
)
from talkconv.serving.server.service import Service, drawn_seed

Handler = Callable[[Request], Awaitable[Response]]
# the path of each task
PATHS = {TRANSLATION: "/translate", SUMMARIZATION: "/summarize", LANGUAGE_MODELLING: "/complete"}
_COUNTED_PATHS = {*PATHS.values(), "/", "/stream", "/windows", "/languages", "/health"}


class Application:
    """The handlers of a server around one service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.settings = service.settings
        self.is_draining = False

    def drain(self) -> None:
        """Refuse new requests, and answer those that were accepted."""
        self.is_draining = True
        self.service.close()

    def asgi(self) -> Starlette:
        """Return the application that a server such as uvicorn runs."""
        counted = Middleware(CountedRequests, metrics=self.service.metrics, paths=_COUNTED_PATHS)
        middleware = [Middleware(SecurityHeaders), counted]
        if self.settings.allow_origin is not None:
            origins = [self.settings.allow_origin]
            middleware.append(
                Middleware(
                    CORSMiddleware, allow_origins=origins, allow_headers=["*"], max_age=86_400
                )
            )
        middleware.append(Middleware(AnsweredFailures))
        return Starlette(
            routes=self._routes(),
            middleware=middleware,
            lifespan=self._lifespan,
            exception_handlers={
                Problem: _problem,
                HTTPException: _http_problem,
                ClientDisconnect: _gone,
            },
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        worker = asyncio.create_task(self.service.batcher.work())
        try:
            yield
        finally:
            worker.cancel()
            self.service.stop()

    def _routes(self) -> list[Route]:
        posts: dict[str, Handler] = {
            PATHS[self.service.task]: self._write,
            "/stream": self._stream,
            "/windows": self._windows,
        }
        gets: dict[str, Handler] = {
            "/": self._page,
            "/languages": self._languages,
            "/health": self._health,
            "/metrics": self._metrics,
            "/openapi.json": self._openapi,
            "/docs": self._docs,
        }
        for name in page_files():
            gets[f"/{name}"] = self._file
        return [
            *(Route(path, handler, methods=["POST"]) for path, handler in posts.items()),
            *(Route(path, handler, methods=["GET"]) for path, handler in gets.items()),
        ]

    async def _write(self, request: Request) -> Response:
        handle: dict[str, Callable[[Request], Awaitable[dict[str, Any]]]] = {
            TRANSLATION: self._translated,
            SUMMARIZATION: self._summarized,
            LANGUAGE_MODELLING: self._completed,
        }
        return JSONResponse(await handle[self.service.task](request))

    async def _translated(self, request: Request) -> dict[str, Any]:
        body = await read_body(request, TranslateRequest, self.settings)
        self._check_languages(body)
        options = WriteOptions(n_best=1 + body.alternatives)
        is_html = body.format == "html"
        work = self.service.write(body.q, options, is_html=is_html)
        text, others = await self._answer(request, work)
        answer: dict[str, Any] = {"translatedText": text}
        if body.alternatives:
            answer["alternatives"] = others
        if body.source == "auto":
            # the network has one source language, so that nothing needs to be detected
            known = {"confidence": 100, "language": self.service.engine.card.source_lang}
            answer["detectedLanguage"] = known if isinstance(body.q, str) else [known] * len(body.q)
        return answer

    async def _summarized(self, request: Request) -> dict[str, Any]:
        body = await read_body(request, SummarizeRequest, self.settings)
        return await self._outputs(request, body.q, WriteOptions(n_best=1 + body.alternatives))

    async def _completed(self, request: Request) -> dict[str, Any]:
        body = await read_body(request, CompleteRequest, self.settings)
        names = ("max_length", "temperature", "top_p", "top_k")
        changes = {name: getattr(body, name) for name in names}
        most = self.service.engine.model.settings.max_length
        if body.max_length is not None and body.max_length > most:
            raise Problem(400, f"max_length must be at most {most}, got {body.max_length}")
        options = WriteOptions(
            n_best=1 + body.alternatives,
            changes=tuple((name, value) for name, value in changes.items() if value is not None),
            seed=drawn_seed(body.temperature, body.seed),
        )
        return await self._outputs(request, body.q, options)

    async def _outputs(
        self, request: Request, q: str | list[str], options: WriteOptions
    ) -> dict[str, Any]:
        text, others = await self._answer(request, self.service.write(q, options))
        return {"outputText": text} | ({"alternatives": others} if options.n_best > 1 else {})

    def _check_languages(self, body: TranslateRequest) -> None:
        card = self.service.engine.card
        if body.source not in ("auto", card.source_lang) or body.target != card.target_lang:
            raise Problem(
                400,
                f"this server translates from {card.source_lang} to {card.target_lang}, "
                f"not from {body.source[:20]} to {body.target[:20]}",
            )

    async def _stream(self, request: Request) -> Response:
        body = await read_body(request, StreamRequest, self.settings)
        if not isinstance(body.q, str):
            raise Problem(400, "q must be one text to be streamed")
        options = WriteOptions(n_best=1 + body.alternatives)
        items = self.service.stream(body.q, options)
        # the first item comes when the request is accepted: what is refused has another status
        first = await self._in_time(anext_of(items))
        return StreamingResponse(
            self._lines(first, items), media_type="application/x-ndjson", headers=_AS_IT_COMES
        )

    async def _lines(
        self, first: dict[str, Any], items: AsyncIterator[dict[str, Any]]
    ) -> AsyncIterator[bytes]:
        yield _line(first)
        try:
            end = time.monotonic() + self.settings.timeout
            while True:
                item = await asyncio.wait_for(anext_of(items), end - time.monotonic())
                yield _line(item)
        except StopAsyncIteration:
            yield _line({"done": True})
        except Problem as problem:
            yield _line({"error": problem.message})
        except asyncio.TimeoutError:
            yield _line({"error": "the answer took too long"})

    async def _windows(self, request: Request) -> Response:
        body = await read_body(request, WindowsRequest, self.settings)
        return JSONResponse(await self._answer(request, self.service.look(body.q, body.output)))

    async def _answer(self, request: Request, work: Awaitable[Any]) -> Any:
        """Wait for an answer no longer than the client and the settings do."""
        return await self._in_time(unless_gone(request, work))

    async def _in_time(self, work: Awaitable[Any]) -> Any:
        try:
            return await asyncio.wait_for(work, self.settings.timeout)
        except asyncio.TimeoutError:
            message = f"the answer took more than {self.settings.timeout:g} seconds"
            raise Problem(504, message) from None

    async def _page(self, request: Request) -> Response:
        return HTMLResponse(page(self.service, needs_key=self.settings.api_key is not None))

    async def _file(self, request: Request) -> Response:
        content, kind = page_files()[request.url.path.lstrip("/")]
        return Response(content, media_type=kind)

    async def _languages(self, request: Request) -> Response:
        card = self.service.engine.card
        if self.service.task != TRANSLATION or not card.source_lang or not card.target_lang:
            return JSONResponse([])
        source, target = card.source_lang, card.target_lang
        targets = {source: [target], target: []}
        return JSONResponse(
            [
                {"code": code, "name": language_name(code), "targets": reached}
                for code, reached in targets.items()
            ]
        )

    async def _health(self, request: Request) -> Response:
        status = "stopping" if self.is_draining else "ok"
        return JSONResponse({"status": status}, status_code=503 if self.is_draining else 200)

    async def _metrics(self, request: Request) -> Response:
        metrics = self.service.metrics
        return Response(metrics.text(), media_type=metrics.content_type)

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(self._description())

    async def _docs(self, request: Request) -> Response:
        return HTMLResponse(openapi_page(self._description()))

    def _description(self) -> dict[str, Any]:
        task = self.service.task
        bodies: dict[str, tuple[type[BaseModel], type[BaseModel], str]] = {
            TRANSLATION: (TranslateRequest, TranslateAnswer, "Translate texts."),
            SUMMARIZATION: (SummarizeRequest, OutputAnswer, "Summarize texts, a line each."),
            LANGUAGE_MODELLING: (CompleteRequest, OutputAnswer, "Continue texts, a line each."),
        }
        request, answer, summary = bodies[task]
        operations = [
            Operation(
                method="POST", path=PATHS[task], summary=summary, request=request, answer=answer
            ),
            Operation(
                method="POST",
                path="/stream",
                summary="Generate the output of one text, one JSON object a line as it is written.",
                request=StreamRequest,
                content_type="application/x-ndjson",
            ),
            Operation(
                method="POST",
                path="/windows",
                summary="Return how far each token looks, in every layer and head.",
                request=WindowsRequest,
            ),
            Operation(method="GET", path="/languages", summary="Return the languages."),
            Operation(method="GET", path="/health", summary="Tell whether the server answers."),
            Operation(
                method="GET",
                path="/metrics",
                summary="Return what the server counts, for Prometheus.",
                content_type="text/plain",
            ),
        ]
        return openapi(f"talkconv: {self.service.engine.card.recipe}", operations)


# nginx buffers answers without the second one, and passes them on when they are complete
_AS_IT_COMES = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def anext_of(items: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
    """Return the next item: wait_for() needs a coroutine, and anext() gives an awaitable."""
    return await items.__anext__()


def _line(item: dict[str, Any]) -> bytes:
    return (json.dumps(item, ensure_ascii=False) + "\n").encode()


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return JSONResponse({"error": error.message}, error.status, headers=error.headers())


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {404: "there is nothing at this path: see /docs", 405: "this path has another method"}
    message = known.get(error.status_code, "the request could not be answered")
    return JSONResponse({"error": message}, error.status_code, headers=error.headers)


async def _gone(request: Request, error: Exception) -> Response:
    # the client has gone away and does not read this; proxies log the status 499 then
    return Response(status_code=499)
