"""Reads text that was segmented with subword-nmt, and segments text with its codes files.

In a word of several subwords, each of them except the last one ends with the mark `@@`.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers

from talkconv.data.bpe import END, Pair

MARK = "@@"
_UNDONE = re.compile(f"{MARK}( |$)")
_VERSION = "#version: 0.2"
_UNKNOWN = "<unk>"


def undo_marks(text: str) -> str:
    """Join marked subwords to words.

    >>> undo_marks("a play@@ house .")
    'a playhouse .'
    """
    return _UNDONE.sub("", text)


def is_segmented(text: str) -> bool:
    """Return whether a line has marks."""
    return _UNDONE.search(text) is not None


class Segmenter:
    """Applies the merges of a codes file to words, as `subword-nmt apply-bpe` does.

    >>> Segmenter([("l", "o"), ("lo", "w</w>")]).segment("low lower")
    'low lo@@ w@@ e@@ r'
    """

    def __init__(self, merges: Sequence[Pair]) -> None:
        # Only the first of repeated merges counts.
        known = list(dict.fromkeys(merges))
        symbols = [_UNKNOWN, *(symbol for a, b in known for symbol in (a, b, a + b))]
        ids = {symbol: id for id, symbol in enumerate(dict.fromkeys(symbols))}
        # A character that is in no merge becomes one <unk>, whose place in the text is known.
        model = models.BPE(ids, known, unk_token=_UNKNOWN, end_of_word_suffix=END, fuse_unk=False)
        self._backend = Tokenizer(model)
        self._backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()

    def segment(self, words: str) -> str:
        """Return the marked subwords of words between single spaces."""
        places = self._backend.encode(words).offsets
        # A subword gets a mark if the next one begins directly after it.
        begins = {begin for begin, _ in places}
        return " ".join(words[begin:end] + MARK * (end in begins) for begin, end in places)


def read_codes(path: Path) -> list[Pair]:
    """Read the merges of a codes file that `subword-nmt learn-bpe` wrote."""
    try:
        version, *lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be a codes file of subword-nmt, got {error}") from error
    if version.strip() != _VERSION:
        raise ValueError(
            f"{path} must be a codes file of subword-nmt that begins with {_VERSION!r}, got "
            f"{version[:40]!r}: learn it again with subword-nmt 0.2 or later"
        )
    merges: list[Pair] = []
    for number, line in enumerate(lines, start=2):
        pair = line.strip("\r\n ").split(" ")
        if len(pair) == 2:
            merges.append((pair[0], pair[1]))
        elif pair != [""]:
            raise ValueError(f"{path}:{number} must be two symbols and one space, got {line!r}")
    return merges
