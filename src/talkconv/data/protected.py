"""Strings that tokenization must keep whole, such as the placeholders of a user interface."""

import re
from collections.abc import Iterable, Sequence

# This symbol replaces a protected string. It is not a letter, a digit or punctuation, so Moses
# treats it as a separate word and does not change it.
SYMBOL = "\N{SYMBOL FOR UNIT SEPARATOR}"


class Protected:
    """Regular expressions, and the strings of a text that match them.

    >>> protected = Protected(["%[a-z]"])
    >>> hidden, strings = protected.hide("Delete %s?", f" {SYMBOL} ")
    >>> protected.show(hidden, strings)
    'Delete  %s ?'
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        for pattern in patterns:
            _check(pattern)
        # The symbol itself may occur in a text, and is then one of the strings.
        self._any = re.compile("|".join(f"(?:{pattern})" for pattern in [*patterns, SYMBOL]))

    def hide(self, text: str, symbol: str = SYMBOL) -> tuple[str, list[str]]:
        """Replace each protected string by `symbol`; return the new text and the strings."""
        strings = [found.group() for found in self._any.finditer(text)]
        return (self._any.sub(symbol, text), strings) if strings else (text, strings)

    def show(self, text: str, strings: Iterable[str]) -> str:
        """Put the strings back into their places."""
        remaining = iter(strings)
        return re.sub(SYMBOL, lambda _: next(remaining), text) if SYMBOL in text else text


def _check(pattern: str) -> None:
    try:
        empty = re.compile(pattern).fullmatch("")
    except re.error as error:
        raise ValueError(
            f"protected must be regular expressions, got {pattern!r}: {error}"
        ) from error
    if empty:
        raise ValueError(f"protected must match at least one character, got {pattern!r}")
