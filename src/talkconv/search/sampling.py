"""Sampling: outputs drawn at random from the probabilities of a network of any library."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from talkconv.search.hypotheses import Hypotheses, Rules
from talkconv.search.network import Floats, Forbidden, Ints, Step


@dataclass(frozen=True)
class SampleSettings:
    """The settings of sampling. Their names and meanings are those of a GenerationConfig."""

    max_length: int
    pad: int
    rules: Rules
    # log-probabilities are divided by it
    temperature: float = 1.0
    # only so many of the likeliest words are drawn; 0 means all
    top_k: int = 0
    # only the likeliest words that together have this probability are drawn
    top_p: float = 1.0
    length_penalty: float = 1.0
    # (B,) the most tokens of each sentence, counted with its prompt; None means max_length
    limits: Ints | None = None


def sample(
    step: Step, prompt: Ints, settings: SampleSettings, n: int, rng: np.random.Generator
) -> Hypotheses:
    """Draw n outputs for each row of prompt (B, p), and return them with the likeliest first.

    The score of an output is its log-probability in the distributions that its words were drawn
    from, divided by its number of words to the power of length_penalty.
    """
    B, begin = prompt.shape
    limits = np.full(B, settings.max_length) if settings.limits is None else settings.limits
    limits = limits.repeat(n)
    tokens = np.full((B * n, settings.max_length), settings.pad, dtype=np.int64)
    tokens[:, :begin] = prompt.repeat(n, axis=0)
    totals, lengths = np.zeros(B * n), np.full(B * n, begin)
    is_open = np.full(B * n, begin < settings.max_length)
    log_probs = step.log_probs(prompt, None).repeat(n, axis=0)
    parents: Ints | None = np.arange(B).repeat(n)
    for now in range(begin, settings.max_length):
        forbidden = settings.rules.forbidden(tokens[:, :now])
        words, drawn = _draw(_distribution(log_probs, forbidden, settings), rng)
        tokens[is_open, now] = words[is_open]
        totals += np.where(is_open, drawn, 0)
        lengths += is_open
        is_open &= ~np.isin(words, settings.rules.eos) & (now + 1 < limits)
        if not is_open.any():
            break
        log_probs = step.log_probs(words[:, None], parents)
        parents = None
    scores = totals / np.maximum(lengths - begin, 1) ** settings.length_penalty
    return Hypotheses(
        tokens.reshape(B, n, -1), scores.astype(np.float32).reshape(B, n), lengths.reshape(B, n)
    ).best(n)


def _distribution(
    log_probs: Floats, forbidden: Forbidden | None, settings: SampleSettings
) -> NDArray[np.float64]:
    """Return log-probabilities (rows, V) of the words to draw from, not normalized."""
    scaled = log_probs.astype(np.float64)
    if forbidden is not None:
        scaled[forbidden.rows, forbidden.words] = -np.inf
    scaled /= settings.temperature
    V = scaled.shape[1]
    if 0 < settings.top_k < V:
        least = np.partition(scaled, V - settings.top_k, axis=1)[:, V - settings.top_k]
        scaled[scaled < least[:, None]] = -np.inf
    if settings.top_p < 1:
        order = np.argsort(-scaled, axis=1, kind="stable")
        probs = np.exp(_normalized(np.take_along_axis(scaled, order, axis=1)))
        # A word is kept if all more likely words together have a probability below top_p.
        dropped = np.cumsum(probs, axis=1) - probs >= settings.top_p
        rows, at = dropped.nonzero()
        scaled[rows, order[rows, at]] = -np.inf
    return scaled


def _normalized(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the softmax: (rows, V) -> (rows, V)."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    normalized: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return normalized


def _draw(
    logits: NDArray[np.float64], rng: np.random.Generator
) -> tuple[Ints, NDArray[np.float64]]:
    """Draw a word for each row of logits (rows, V); return words and log-probabilities (rows,)."""
    log_probs = _normalized(logits)
    cumulated = np.cumsum(np.exp(log_probs), axis=1)
    # Rounding may leave the last sum below 1, and a word of probability 0 must not be drawn.
    at = rng.random(len(logits)) * cumulated[:, -1]
    words = (cumulated <= at[:, None]).sum(axis=1)
    return words, np.take_along_axis(log_probs, words[:, None], axis=1)[:, 0]
