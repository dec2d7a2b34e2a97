"""Where sequences begin and end in the tensors of a call on the GPU."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

# Positions have 32 bits in the kernels, with the reach of two windows added; addresses have 64.
MOST_TOKENS = 2**30 - 2**10


@dataclass(frozen=True)
class Sequences:
    """The begins and ends of sequences, which are padded, with or without lengths, or packed."""

    tokens: int  # rows of the results along time
    count: int
    lengths: Tensor | None
    ends: Tensor | None
    context: int = 0  # rows that x has more, in front of each sequence

    @classmethod
    def of(
        cls, out: Tensor, lengths: Tensor | None, cu_seqlens: Tensor | None, context: int = 0
    ) -> "Sequences":
        tokens = out.shape[-2]
        if tokens + context > MOST_TOKENS:
            raise ValueError(
                f"on a GPU x has at most {MOST_TOKENS} tokens along time, got {tokens + context}"
            )
        ends = None if cu_seqlens is None else _ends(cu_seqlens, tokens)
        count = out.shape[0] if ends is None else ends.shape[0] - 1
        return cls(tokens, count, None if lengths is None else lengths.contiguous(), ends, context)

    def doubled(self) -> "Sequences":
        """Return sequences that are twice as long."""
        ends = None if self.ends is None else 2 * self.ends
        return replace(self, tokens=2 * self.tokens, ends=ends)

    def rows(self, unit: int) -> int:
        """Return the rows of a table with one for every `unit` tokens of x.

        Each sequence starts with a row of its own; packed, this is an upper bound, which needs no
        look at the lengths.
        """
        if self.ends is not None:
            return self.tokens // unit + self.count
        return self.count * ((self.tokens + self.context) // unit + 1)

    def slots(self, block: int) -> int:
        """Return how many programs own one block of tokens each."""
        if self.ends is not None:
            return self.tokens // block + self.count
        return self.count * (self.tokens // block + 1)

    def arguments(self) -> dict[str, Any]:
        return dict(lengths=self.lengths, ends=self.ends, tokens=self.tokens, sequences=self.count)


def _ends(cu_seqlens: Tensor, tokens: int) -> Tensor:
    """Return where sequences begin and end, from 0 to `tokens`, never falling: (S + 3,).

    The first and the last one hold the rows that no sequence covers. Correct cu_seqlens leave both
    empty; wrong ones cannot be reported without waiting for the GPU, but they must not lead outside
    the tensors or leave a row of the results unwritten.
    """
    if cu_seqlens.shape[0] == 1 and tokens:
        raise ValueError(
            f"cu_seqlens must run from 0 to N = {tokens} (the rows of x), got 1 number; "
            "for one sequence pass [0, N]"
        )
    inner = cu_seqlens.clamp(0, tokens).to(torch.int32).cummax(0).values
    return torch.cat((inner.new_zeros(1), inner, inner.new_full((1,), tokens)))
