"""The interface between a search and a network, which any library may compute."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


class Forbidden(NamedTuple):
    """Words that must not come next: rows[i] must not be followed by words[i], (m,) each."""

    rows: Ints
    words: Ints


class Step(Protocol):
    """A network during a search. It keeps the state of every row between calls.

    The first call passes the prompts (B, p), one row for each sentence. In every later call row i
    continues row parents[i] of the call before, or row i if there are no parents. The rows of a
    sentence are always adjacent, and each sentence has the same number of them.
    """

    def best(
        self, tokens: Ints, parents: Ints | None, forbidden: Forbidden | None, k: int
    ) -> tuple[Floats, Ints]:
        """Read `tokens` (rows, t) and return the k best words that may follow each row.

        The result is their log-probabilities (rows, k), the best first, and the words (rows, k). A
        forbidden word has the log-probability minus infinity; those of the others do not change.
        """
        ...

    def log_probs(self, tokens: Ints, parents: Ints | None) -> Floats:
        """Read `tokens` (rows, t) and return the log-probabilities of all words (rows, V)."""
        ...


class NetworkConfig(Protocol):
    """The facts about a network that a search needs; a TaLKConvConfig has them."""

    @property
    def is_encoder_decoder(self) -> bool: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def pad_token_id(self) -> int | None: ...
    @property
    def eos_token_id(self) -> int | list[int] | None: ...


class Network(Protocol):
    """A network that can start a search."""

    @property
    def config(self) -> NetworkConfig: ...

    def begin_search(self, input_ids: Ints, attention_mask: Ints | None) -> tuple[Ints, Step]:
        """Return the prompts (B, p) of a search and the step that continues them.

        input_ids (B, S) are sources, padded on the right, or for a language model the prompts
        themselves, padded on the left. attention_mask (B, S) is 0 at padding and 1 elsewhere.
        """
        ...


def end_tokens(eos: int | list[int] | None) -> tuple[int, ...]:
    """Return all tokens that end an output.

    >>> end_tokens(None), end_tokens(2), end_tokens([2, 5])
    ((), (2,), (2, 5))
    """
    if eos is None:
        return ()
    return (int(eos),) if isinstance(eos, int) else tuple(int(each) for each in eos)
