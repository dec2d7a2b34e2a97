"""The description of a server's interface: OpenAPI as JSON, and as a page without scripts."""

import json
from html import escape
from typing import Any

from pydantic import BaseModel

import talkconv
from talkconv.serving.server.request_models import ErrorAnswer

PROBLEMS = {
    "400": "The request is malformed.",
    "403": "The api_key is missing or wrong.",
    "408": "The request came too slowly.",
    "413": "The request has too many bytes, sentences or tokens.",
    "415": "The Content-Type is neither JSON nor a form.",
    "503": "Too many sentences are waiting, or the server is stopping; see Retry-After.",
    "504": "The answer took too long.",
}


class Operation(BaseModel):
    """One path of the interface."""

    method: str
    path: str
    summary: str
    request: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    # the kind of an answer that is not JSON
    content_type: str = "application/json"


def openapi(title: str, operations: list[Operation]) -> dict[str, Any]:
    """Return the description of the interface in the format OpenAPI 3.1."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": talkconv.__version__},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = {} if operation.answer is None else _reference(operation.answer, schemas)
    content = {operation.content_type: {"schema": schema} if schema else {}}
    found: dict[str, Any] = {
        "summary": operation.summary,
        "responses": {"200": {"description": "The answer.", "content": content}},
    }
    if operation.request is not None:
        body = {"schema": _reference(operation.request, schemas)}
        kinds = ("application/json", "application/x-www-form-urlencoded")
        found["requestBody"] = {"required": True, "content": dict.fromkeys(kinds, body)}
        error = {"application/json": {"schema": _reference(ErrorAnswer, schemas)}}
        for status, description in PROBLEMS.items():
            found["responses"][status] = {"description": description, "content": error}
    return found


def _reference(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, str]:
    place = "#/components/schemas/{model}"
    schema = model.model_json_schema(ref_template=place)
    schemas.update(schema.pop("$defs", {}))
    schemas[model.__name__] = schema
    return {"$ref": place.format(model=model.__name__)}


def openapi_page(description: dict[str, Any]) -> str:
    """Return the description as an HTML page that loads nothing but the server's style sheet."""
    parts = []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            parts.append(
                f"<section><h2>{method.upper()} {escape(path)}</h2>"
                f"<p>{escape(operation['summary'])}</p>{_body(operation, description)}</section>"
            )
    title = escape(description["info"]["title"])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}</title><link rel="icon" href="data:,">'
        '<link rel="stylesheet" href="page.css"></head><body>'
        f'<header><p class="kicker">talkconv serve</p><h1>{title}</h1>'
        '<p class="lead">Errors are JSON objects with an <b>error</b>. The same description for '
        'programs is <a href="openapi.json">openapi.json</a>.</p></header>'
        f"<main>{''.join(parts)}</main></body></html>"
    )


def _body(operation: dict[str, Any], description: dict[str, Any]) -> str:
    if "requestBody" not in operation:
        return ""
    reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    schema = description["components"]["schemas"][reference.rsplit("/", 1)[1]]
    required = set(schema.get("required", ()))
    rows = [
        f"<tr><th>{escape(name)}</th><td>{'required' if name in required else 'optional'}</td>"
        f"<td>{escape(_kind(field))}</td><td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in schema["properties"].items()
    ]
    return f"<table>{''.join(rows)}</table>"


def _kind(field: dict[str, Any]) -> str:
    """Return the type of a field in words."""
    if "anyOf" in field:
        return " or ".join(_kind(each) for each in field["anyOf"])
    if "enum" in field:
        return " or ".join(json.dumps(each) for each in field["enum"])
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    return str(field.get("type", "anything"))
