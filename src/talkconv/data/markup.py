"""Reads segments from the xml and sgm files of the test sets of IWSLT and WMT."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from talkconv.data.lines import Reading, read_lines

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE | re.DOTALL)


def read_segments(path: Path, reading: Reading) -> Iterator[str]:
    """Yield the text of each <seg>; a file without any is an error.

    These files are not always well-formed XML, so they are not read as such.
    """
    found = _SEGMENT.findall("\n".join(read_lines(path, reading)))
    if not found:
        raise ValueError(f"{path} must hold <seg> elements, and has none: download it again")
    for text in found:
        # The preparation that the paper follows writes the plain apostrophe here, too.
        yield " ".join(html.unescape(text).replace("’", "'").split())
