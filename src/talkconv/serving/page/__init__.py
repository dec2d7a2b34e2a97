"""The style sheet and the windows explorer, which the pages of the demo and the server share."""

from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).parent
STYLE, WINDOWS = "style.css", "windows.js"


@lru_cache
def page_text(name: str) -> str:
    """Return a file of this folder.

    >>> page_text("windows.js").startswith('"use strict";')
    True
    """
    return (FOLDER / name).read_text(encoding="utf-8")


def explorer_html(reads: str, writes: str) -> str:
    """Return the markup that windows.js fills; the words say what encoder and decoder do."""
    return page_text("windows.html").format(reads=reads, writes=writes)
