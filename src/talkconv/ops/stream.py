"""The tail of a stream: the last tokens that a causal convolution still needs."""

from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

Tail = TypeVar("Tail", bound="StreamTail")


class StreamTail:
    """The methods of a state that consists of a stream's last tokens.

    A subclass is a frozen dataclass with the fields below. Every method returns a new state and
    leaves the old one as it was.
    """

    # (B, reach + up to `rollback`, C), the newest last; zeros stand before the first token
    tokens: Tensor
    # the largest number of tokens that crop() can remove
    rollback: int
    # the number of tokens that the stream has read
    seen: int

    @property
    def reach(self) -> int:
        """The number of past tokens that the next token needs."""
        raise NotImplementedError

    def reorder(self: Tail, index: Tensor) -> Tail:
        """Return a state in which row k is row index[k] of this one, to select beams."""
        return _replaced(self, tokens=self.tokens.index_select(0, index))

    def repeat(self: Tail, n: int) -> Tail:
        """Return a state with n adjacent copies of each row, B -> n * B, to start n beams."""
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        return _replaced(self, tokens=self.tokens.repeat_interleave(n, dim=0))

    def crop(self: Tail, tokens: int) -> Tail:
        """Return the state before the last `tokens` tokens."""
        most = min(self.tokens.shape[1] - self.reach, self.seen)
        if not 0 <= tokens <= most:
            raise ValueError(
                f"crop can take back 0 .. {most} tokens here (rollback={self.rollback}, "
                f"seen={self.seen}), got {tokens}; make the state with a larger rollback"
            )
        rows = self.tokens.shape[1] - tokens
        return _replaced(self, tokens=self.tokens[:, :rows], seen=self.seen - tokens)

    def extend(self: Tail, x: Tensor) -> tuple[Tensor, Tail]:
        """Return the new tokens x (B, t, C) with the past that they need, and the next state.

        The first result is (B, reach + t, C): rows that are kept only for crop() are left out.
        """
        stream = torch.cat((self.tokens, x), dim=1)
        rows = min(self.reach + self.rollback, stream.shape[1])
        kept = stream[:, stream.shape[1] - rows :]
        # a view would keep the memory of a whole long prompt
        kept = kept.clone() if stream.shape[1] > 2 * rows else kept
        window = stream[:, stream.shape[1] - x.shape[1] - self.reach :]
        return window, _replaced(self, tokens=kept, seen=self.seen + x.shape[1])


def _replaced(state: Tail, **changes: Any) -> Tail:
    # mypy cannot know that every subclass is a dataclass
    changed: Tail = replace(state, **changes)  # type: ignore[type-var]
    return changed
