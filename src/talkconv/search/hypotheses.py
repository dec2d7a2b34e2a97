"""The hypotheses of a search, and the rules that forbid words in them."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from talkconv.search.network import Floats, Forbidden, Ints


@dataclass(frozen=True)
class Hypotheses:
    """n outputs of each sentence: tokens (B, n, max_length), scores and lengths (B, n)."""

    tokens: Ints
    scores: Floats
    lengths: Ints

    def best(self, n: int) -> "Hypotheses":
        """Return the n best of each sentence, the best first."""
        return self.at(np.argsort(-self.scores, axis=1, kind="stable")[:, :n])

    def at(self, index: Ints) -> "Hypotheses":
        """Return the hypotheses index (B, m) of each sentence."""
        return Hypotheses(
            np.take_along_axis(self.tokens, index[:, :, None], axis=1),
            np.take_along_axis(self.scores, index, axis=1),
            np.take_along_axis(self.lengths, index, axis=1),
        )

    def joined(self, other: "Hypotheses") -> "Hypotheses":
        return Hypotheses(
            np.concatenate((self.tokens, other.tokens), axis=1),
            np.concatenate((self.scores, other.scores), axis=1),
            np.concatenate((self.lengths, other.lengths), axis=1),
        )


@dataclass(frozen=True)
class Rules:
    """The rules that every output must follow."""

    # the words that end an output
    eos: tuple[int, ...] = ()
    # the fewest tokens of an output, counted with its prompt
    min_length: int = 0
    # an n-gram of this many tokens comes at most once; 0 means any number of times
    no_repeat_ngram: int = 0

    def forbidden(self, written: Ints) -> Forbidden | None:
        """Return the words that must not follow the tokens `written` (rows, now)."""
        now = written.shape[1]
        found = []
        if self.eos and now < self.min_length:
            rows = np.arange(len(written)).repeat(len(self.eos))
            found.append((rows, np.tile(np.array(self.eos, dtype=np.int64), len(written))))
        if self.no_repeat_ngram and now >= self.no_repeat_ngram:
            found.append(_repeats(written, self.no_repeat_ngram))
        if not found:
            return None
        all_rows, all_words = zip(*found, strict=True)
        return Forbidden(np.concatenate(all_rows), np.concatenate(all_words))


def _repeats(written: Ints, n: int) -> tuple[Ints, Ints]:
    """Return pairs of a row and a word that would repeat an n-gram of that row."""
    ngrams = sliding_window_view(written, n, axis=1)  # (rows, now - n + 1, n)
    begun = written[:, None, written.shape[1] - n + 1 :]  # (rows, 1, n - 1)
    rows, at = (ngrams[:, :, :-1] == begun).all(axis=-1).nonzero()
    return rows, ngrams[rows, at, -1]
