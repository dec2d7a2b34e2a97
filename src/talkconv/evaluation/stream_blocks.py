"""The value of a perplexity, and the blocks in which a stream is read. This needs no torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Perplexity:
    """-log P of a stream in nats, and its numbers of tokens and words."""

    nats: float
    tokens: int
    # None if the text is not known
    words: int | None
    signature: str

    @property
    def per_token(self) -> float:
        return math.exp(self.nats / self.tokens)

    @property
    def per_word(self) -> float | None:
        """The perplexity per word, which can be compared between vocabularies.

        The end of a line counts as a word.
        """
        return None if self.words is None else math.exp(self.nats / self.words)


class Block(NamedTuple):
    """A part of a stream: it reads tokens first .. end and scores those after begin .. end."""

    first: int
    begin: int
    end: int


def blocks_of(length: int, block: int, context: int) -> list[Block]:
    """Cut a stream so that each token except the first is scored once, after `context` others.

    >>> blocks_of(6, block=4, context=2)
    [Block(first=0, begin=0, end=2), Block(first=0, begin=2, end=4), Block(first=2, begin=4, end=5)]
    """
    if not 0 <= context < block:
        raise ValueError(f"context must be from 0 to below block={block}, got {context}")
    scored = block - context
    return [
        Block(max(0, begin - context), begin, min(begin + scored, length - 1))
        for begin in range(0, length - 1, scored)
    ]


def words_of_lines(lines: Sequence[str]) -> int:
    """Count the words, which spaces separate, and one more for each end of a line."""
    return sum(len(line.split()) + 1 for line in lines)
