"""Beam search, as transformers defines it, for networks of any library.

This file does the bookkeeping: running and ended hypotheses, length penalties, limits and repeated
n-grams. The network stands behind the protocol `Step`: it reads the next tokens and returns the
best words after each row, so that probabilities of whole vocabularies never leave its library.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


class Forbidden(NamedTuple):
    """Words that must not come next: rows[i] must not be followed by words[i], (m,) each."""

    rows: Ints
    words: Ints


class Step(Protocol):
    """A network at work: it keeps the state of every row between calls."""

    def __call__(
        self, tokens: Ints, parents: Ints | None, forbidden: Forbidden | None, k: int
    ) -> tuple[Floats, Ints]:
        """Read `tokens` (rows, t) and return the k best words that may follow each row.

        The first call passes the prompts, one row for each sentence, and no parents. In every later
        call row i continues row parents[i] of the call before; the rows of a sentence are adjacent.
        The result is the log-probabilities (rows, k), the best first, and the words (rows, k). A
        forbidden word has the log-probability minus infinity; those of the others do not change.
        """
        ...


@dataclass(frozen=True)
class BeamSettings:
    """The settings of a search. Their names and meanings are those of a GenerationConfig."""

    num_beams: int
    max_length: int
    # the words that end an output
    eos: tuple[int, ...]
    pad: int
    length_penalty: float
    early_stopping: bool | str = False
    # the fewest tokens of an output, counted with its prompt
    min_length: int = 0
    # an n-gram of this many tokens comes at most once; 0 means any number of times
    no_repeat_ngram: int = 0
    # is subtracted from the score at each word
    step_penalty: float = 0.0
    # (B,) the most tokens of each sentence, counted with its prompt; None means max_length
    limits: Ints | None = None

    @property
    def kept(self) -> int:
        """Candidates of a sentence at each step, of which at least num_beams do not end."""
        return self.kept_per_beam * self.num_beams

    @property
    def kept_per_beam(self) -> int:
        return max(2, 1 + len(self.eos))


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
class _Candidates:
    """Running hypotheses and a word that may follow each of them: (B, m) each, the best first."""

    parents: Ints
    words: Ints
    scores: Floats

    def at(self, index: Ints) -> "_Candidates":
        """Return the candidates index (B, m) of each sentence."""
        return _Candidates(
            np.take_along_axis(self.parents, index, axis=1),
            np.take_along_axis(self.words, index, axis=1),
            np.take_along_axis(self.scores, index, axis=1),
        )

    def first(self, n: int) -> "_Candidates":
        return _Candidates(self.parents[:, :n], self.words[:, :n], self.scores[:, :n])

    def hypotheses(self, running: Hypotheses, now: int) -> Hypotheses:
        """Write each word behind the first `now` tokens of its parent."""
        tokens = np.take_along_axis(running.tokens, self.parents[:, :, None], axis=1)
        tokens[:, :, now] = self.words
        return Hypotheses(tokens, self.scores, np.full_like(self.words, now + 1))


def beam_search(step: Step, prompt: Ints, settings: BeamSettings) -> Hypotheses:
    """Return the num_beams best outputs for each row of prompt (B, p), the best first.

    An output begins with its prompt and is filled up with settings.pad.
    """
    B, begin = prompt.shape
    n, length = settings.num_beams, settings.max_length
    running = _begun(prompt, 1, settings, score=0)
    # Any output that ends has a better score than these.
    ended = _begun(prompt, n, settings, score=-np.inf)
    limits = np.full(B, length) if settings.limits is None else settings.limits
    is_open = np.ones(B, dtype=np.bool_)
    best = step(prompt, None, _forbidden(running, settings, begin), settings.kept)
    for now in range(begin, length):
        written = now + 1 - begin
        candidates = _candidates(*best, running, settings)
        ends = np.isin(candidates.words, settings.eos) | (now + 1 >= limits)[:, None]
        # Only the n best candidates may end.
        counts = ends[:, :n] & is_open[:, None]
        ended = _collect(ended, candidates.first(n), counts, running, settings, now, written)
        # The candidates are sorted. Those that do not end stay so, and the first n go on.
        going_on = candidates.at(np.argsort(ends, axis=1, kind="stable")[:, :n])
        rows = np.arange(B)[:, None] * running.scores.shape[1] + going_on.parents
        running = going_on.hypotheses(running, now)
        is_open &= _can_improve(running, ended, settings, written, limits - begin)
        is_open &= now + 1 < limits
        if now + 1 == length or not is_open.any():
            break
        forbidden = _forbidden(running, settings, now + 1)
        best = step(going_on.words.reshape(-1, 1), rows.reshape(-1), forbidden, settings.kept)
    return ended


def _begun(prompt: Ints, n: int, settings: BeamSettings, score: float) -> Hypotheses:
    """Return n hypotheses of each sentence that consist of the prompt."""
    B, begin = prompt.shape
    tokens = np.full((B, n, settings.max_length), settings.pad, dtype=np.int64)
    tokens[:, :, :begin] = prompt[:, None]
    scores = np.full((B, n), score, dtype=np.float32)
    return Hypotheses(tokens, scores, np.full((B, n), begin, dtype=np.int64))


def _candidates(
    log_probs: Floats, words: Ints, running: Hypotheses, settings: BeamSettings
) -> _Candidates:
    """Return the best continuations of each sentence among the k best words of each beam."""
    B, n = running.scores.shape
    k = settings.kept
    steps = log_probs.reshape(B, n, k) - np.float32(settings.step_penalty)
    totals = (steps + running.scores[:, :, None]).reshape(B, n * k)
    parents = np.arange(n * k).reshape(1, -1).repeat(B, axis=0) // k
    every = _Candidates(parents, words.reshape(B, n * k), totals)
    return every.at(np.argsort(-totals, axis=1, kind="stable")[:, :k])


def _forbidden(running: Hypotheses, settings: BeamSettings, now: int) -> Forbidden | None:
    """Return the words that min_length and no_repeat_ngram forbid after `now` tokens."""
    n = settings.no_repeat_ngram
    rows: list[Any] = []
    words: list[Any] = []
    if settings.eos and now < settings.min_length:
        count = running.scores.size
        rows.append(np.arange(count).repeat(len(settings.eos)))
        words.append(np.tile(np.array(settings.eos, dtype=np.int64), count))
    if n and now >= n:
        written = running.tokens[:, :, :now].reshape(-1, now)
        ngrams = sliding_window_view(written, n, axis=1)  # (rows, now - n + 1, n)
        begun = (ngrams[:, :, :-1] == written[:, None, now - n + 1 :]).all(axis=-1)
        row, at = begun.nonzero()
        rows.append(row)
        words.append(ngrams[row, at, -1])
    return Forbidden(np.concatenate(rows), np.concatenate(words)) if rows else None


def _collect(
    ended: Hypotheses,
    candidates: _Candidates,
    counts: Bools,
    running: Hypotheses,
    settings: BeamSettings,
    now: int,
    written: int,
) -> Hypotheses:
    """Return the n best of the ended hypotheses and of the candidates that count as ended."""
    if settings.early_stopping is True:
        counts = counts & ~_is_full(ended)[:, None]
    if not counts.any():
        return ended
    scores = candidates.scores / np.float32(written**settings.length_penalty)
    scores = np.where(counts, scores, np.float32(-np.inf))
    new = replace(candidates, scores=scores).hypotheses(running, now)
    return ended.joined(new).best(settings.num_beams)


def _can_improve(
    running: Hypotheses, ended: Hypotheses, settings: BeamSettings, written: int, most: Ints
) -> Bools:
    """Return (B,): whether the best running beam could still beat the worst that ended.

    A sentence with fewer than n ended hypotheses can always improve. `most` (B,) is the largest
    number of words that each sentence may have, `written` the number that it has.
    """
    is_full = _is_full(ended)
    if settings.early_stopping is True:
        return ~is_full
    penalty = settings.length_penalty
    at_most = most.astype(np.float32) ** np.float32(penalty)
    now = np.float32(written**penalty)
    best = running.scores[:, 0]
    possible = best / (at_most if settings.early_stopping == "never" and penalty > 0 else now)
    if settings.step_penalty < 0:
        # A negative penalty rewards every word that may come, divided by the better length.
        total = best - np.float32(settings.step_penalty) * (most - written).astype(np.float32)
        possible = np.maximum(total / now, total / at_most)
    improves: Bools = ~is_full | (possible > ended.scores.min(axis=1))
    return improves


def _is_full(ended: Hypotheses) -> Bools:
    """Return (B,): whether as many hypotheses as beams have ended."""
    is_full: Bools = ended.scores.min(axis=1) > -np.inf
    return is_full
