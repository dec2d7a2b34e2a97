"""Beam search, as transformers defines it, for networks of any library.

This file does the bookkeeping: running and ended hypotheses, length penalties and limits. The
network returns only the best words of each row (talkconv.search.network.Step), so that
probabilities of whole vocabularies never leave its library.
"""

from dataclasses import dataclass, replace

import numpy as np

from talkconv.search.hypotheses import Hypotheses, Rules
from talkconv.search.network import Bools, Floats, Ints, Step


@dataclass(frozen=True)
class BeamSettings:
    """The settings of a search. Their names and meanings are those of a GenerationConfig."""

    num_beams: int
    max_length: int
    pad: int
    length_penalty: float
    rules: Rules
    early_stopping: bool | str = False
    # is subtracted from the score at each word
    step_penalty: float = 0.0
    # (B,) the most tokens of each sentence, counted with its prompt; None means max_length
    limits: Ints | None = None

    @property
    def kept(self) -> int:
        """Return how many candidates of a sentence each step compares."""
        return candidates(self.num_beams, self.rules.eos)


def candidates(num_beams: int, eos: tuple[int, ...]) -> int:
    """Return how many candidates there must be so that num_beams of them do not end.

    >>> candidates(5, eos=(2,))
    10
    """
    return num_beams * max(2, 1 + len(eos))


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
    best = step.best(prompt, None, settings.rules.forbidden(prompt), settings.kept)
    for now in range(begin, length):
        written = now + 1 - begin
        found = _best_candidates(*best, running, settings)
        ends = np.isin(found.words, settings.rules.eos) | (now + 1 >= limits)[:, None]
        # Only the n best candidates may end.
        counts = ends[:, :n] & is_open[:, None]
        ended = _collect(ended, found.first(n), counts, running, settings, now, written)
        # The candidates are sorted. Those that do not end stay so, and the first n go on.
        going_on = found.at(np.argsort(ends, axis=1, kind="stable")[:, :n])
        rows = np.arange(B)[:, None] * running.scores.shape[1] + going_on.parents
        running = going_on.hypotheses(running, now)
        is_open &= _can_improve(running, ended, settings, written, limits - begin)
        is_open &= now + 1 < limits
        if now + 1 == length or not is_open.any():
            break
        forbidden = settings.rules.forbidden(running.tokens[:, :, : now + 1].reshape(B * n, -1))
        words = going_on.words.reshape(B * n, 1)
        best = step.best(words, rows.reshape(-1), forbidden, settings.kept)
    return ended


def _begun(prompt: Ints, n: int, settings: BeamSettings, score: float) -> Hypotheses:
    """Return n hypotheses of each sentence that consist of the prompt."""
    B, begin = prompt.shape
    tokens = np.full((B, n, settings.max_length), settings.pad, dtype=np.int64)
    tokens[:, :, :begin] = prompt[:, None]
    scores = np.full((B, n), score, dtype=np.float32)
    return Hypotheses(tokens, scores, np.full((B, n), begin, dtype=np.int64))


def _best_candidates(
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
