"""Reads the body of a request: JSON or a form, of bounded size, within a bounded time."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable
from typing import Any, TypeVar
from urllib.parse import parse_qs

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from talkconv.serving.server.problem import Problem
from talkconv.serving.server.server_settings import ServerSettings

Body = TypeVar("Body", bound=BaseModel)
Answer = TypeVar("Answer")
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"


async def read_body(request: Request, kind: type[Body], settings: ServerSettings) -> Body:
    """Return the body of a request as `kind`, and check its key; a Problem says what is wrong."""
    try:
        data = await asyncio.wait_for(_bytes(request, settings), settings.read_timeout)
    except asyncio.TimeoutError:
        raise Problem(
            408, f"the request did not come within {settings.read_timeout:g} seconds"
        ) from None
    fields = _fields(request.headers.get("content-type", ""), data)
    _check_key(fields, settings)
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise Problem(400, _told(error)) from None


async def _bytes(request: Request, settings: ServerSettings) -> bytes:
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > settings.max_body:
            raise Problem(413, f"the request must have at most {settings.max_body} bytes")
    return bytes(found)


def _fields(content_type: str, data: bytes) -> dict[str, Any]:
    kind = content_type.split(";")[0].strip().lower()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Problem(400, "the request must be text in UTF-8") from None
    if kind == _FORM:
        return _form(text)
    if kind != _JSON:
        raise Problem(415, f"the Content-Type must be {_JSON} or {_FORM}")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise Problem(400, "the request must be JSON, and it is not") from None
    if not isinstance(fields, dict):
        raise Problem(400, "the request must be a JSON object, with the text as q")
    return fields


def _form(text: str) -> dict[str, Any]:
    try:
        found = parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=10_000)
    except (UnicodeDecodeError, ValueError):
        raise Problem(400, "the form must be text in UTF-8, with at most 10000 fields") from None
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def _check_key(fields: dict[str, Any], settings: ServerSettings) -> None:
    if settings.api_key is None:
        return
    given = fields.get("api_key")
    # hashes have one length, so that the time tells nothing about the key
    ours, theirs = (_hash(key) for key in (settings.api_key, given))
    if not isinstance(given, str) or not hmac.compare_digest(ours, theirs):
        raise Problem(403, "this server needs its api_key")


def _hash(key: object) -> bytes:
    return hashlib.sha256(str(key).encode("utf-8", errors="replace")).digest()


def _told(error: ValidationError) -> str:
    """Return the first mistake of a request in words."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("str", "list[str]"))
    return f"{place}: {first['msg']}" if place else str(first["msg"])


async def unless_gone(request: Request, work: Awaitable[Answer]) -> Answer:
    """Wait for an answer, and give up as soon as the client has gone away.

    The body must have been read: what comes from the client now is that it has gone.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        task.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
