"""The commands that install missing packages, from the place where this package came from."""

import importlib.metadata
import json
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation.

    The package may come from an index, a clone or a wheel. pip notes which, and a command that
    names an index would fail for the others.
    """
    return f"pip install {_requirement(f'[{extra}]')}"


def reinstall_command() -> str:
    """Return the command that builds and installs the package again, without its dependencies."""
    return f"pip install --force-reinstall --no-deps {_requirement('')}"


def _requirement(extra: str) -> str:
    source = _source()
    if source is None:
        return f"'talkconv{extra}'"
    url = urlsplit(source["url"])
    if url.scheme != "file":
        return f"'talkconv{extra} @ {source['url']}'"
    editable = "-e " if source.get("dir_info", {}).get("editable") else ""
    return f"{editable}'{url2pathname(url.path)}{extra}'"


def _source() -> dict[str, Any] | None:
    """Return pip's note about the place it installed from, or None if that was an index."""
    try:
        note = importlib.metadata.distribution("talkconv").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return None
    return None if note is None else dict(json.loads(note))
