"""Beam search as transformers defines it, at the price of the network alone.

transformers' own loop sorts all words of all beams and reads the prompt once per beam. This one
looks for the best words beam by beam and reads the prompt once per sentence; what it finds is the
same. `generate` uses it for beam search, also with least lengths and without repeated n-grams, and
keeps to transformers' loop for all else (sampling, other processors of scores, more outputs).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# Words are compared in groups of this many before the groups that may hold the best are sorted.
GROUP = 8

# (tokens (rows, t), parent row of each, or None at first) -> logits of the next word (rows, V)
Step = Callable[[Tensor, Tensor | None], Tensor]


@dataclass(frozen=True)
class BeamSettings:
    """How to search; names and meanings are those of transformers' GenerationConfig."""

    num_beams: int
    max_length: int
    eos: Tensor | None
    pad: int
    length_penalty: float
    early_stopping: bool | str = False
    # no sequence ends with fewer tokens, prompt included
    min_length: int = 0
    # no sequence of this many tokens comes twice; 0: any may
    no_repeat_ngram: int = 0
    # what each word costs besides its probability
    step_penalty: float = 0.0
    # (B,) where each sentence must end at the latest, prompt included; None: at max_length
    limits: Tensor | None = None

    @property
    def kept(self) -> int:
        """Candidates a step looks at: enough that num_beams go on even if others end."""
        return self.kept_per_beam * self.num_beams

    @property
    def kept_per_beam(self) -> int:
        ends = 0 if self.eos is None else len(self.eos)
        return max(2, 1 + ends)


@dataclass
class Hypotheses:
    """The n best of each sentence: tokens (B, n, max_length), scores and lengths (B, n)."""

    tokens: Tensor
    scores: Tensor
    lengths: Tensor

    def best(self, n: int) -> "Hypotheses":
        scores, index = self.scores.topk(n)
        return Hypotheses(pick(self.tokens, index), scores, self.lengths.gather(1, index))

    def joined(self, other: "Hypotheses") -> "Hypotheses":
        return Hypotheses(
            torch.cat((self.tokens, other.tokens), dim=1),
            torch.cat((self.scores, other.scores), dim=1),
            torch.cat((self.lengths, other.lengths), dim=1),
        )


def beam_search(step: Step, prompt: Tensor, settings: BeamSettings) -> Hypotheses:
    """prompt (B, p) -> the num_beams best endings of each, the best first."""
    B, begin = prompt.shape
    n, length = settings.num_beams, settings.max_length
    running = Hypotheses(
        prompt.new_full((B, 1, length), settings.pad),
        torch.zeros(B, 1, device=prompt.device),
        prompt.new_full((B, 1), begin),
    )
    running.tokens[:, 0, :begin] = prompt
    # nothing has ended yet: places with a score that any ending beats
    ended = Hypotheses(
        prompt.new_full((B, n, length), settings.pad),
        torch.full((B, n), -torch.inf, device=prompt.device),
        prompt.new_full((B, n), begin),
    )
    open_ = torch.ones(B, dtype=torch.bool, device=prompt.device)
    limits = prompt.new_full((B,), length) if settings.limits is None else settings.limits
    logits = step(prompt, None)
    for now in range(begin, length):
        candidates, parents = _candidates(logits, running, settings, now)
        ends = _ends(candidates.tokens[:, :, now], settings) | (now + 1 >= limits)[:, None]
        ended = _collect(ended, candidates, ends, open_, settings, now + 1 - begin)
        # candidates are sorted, and stay so: the first n that go on
        order = ends.long().argsort(dim=1, stable=True)[:, :n]
        running = Hypotheses(
            pick(candidates.tokens, order),
            candidates.scores.gather(1, order),
            candidates.lengths.gather(1, order),
        )
        open_ &= _can_improve(running, ended, settings, now + 1 - begin, limits - begin)
        open_ &= now + 1 < limits
        if now + 1 == length or not open_.any():
            break
        rows = torch.arange(B, device=prompt.device)[:, None] * (logits.shape[0] // B)
        parents = (rows + parents.gather(1, order)).flatten()
        logits = step(running.tokens[:, :, now].reshape(B * n, 1), parents)
    return ended


def _candidates(
    logits: Tensor, running: Hypotheses, settings: BeamSettings, now: int
) -> tuple[Hypotheses, Tensor]:
    """The best continuations of each sentence over all its beams, and the beam each came from."""
    B, n = running.scores.shape
    k = settings.kept
    log_probs = logits.float().log_softmax(dim=-1)  # (B * n, V)
    _forbid(log_probs, running.tokens[:, :, :now].flatten(0, 1), settings)
    scores, words = top_of_rows(log_probs - settings.step_penalty, k)  # (B * n, k) each
    totals = (scores.view(B, n, k) + running.scores[:, :, None]).flatten(1)
    totals, index = totals.topk(k)
    parents = index // k
    tokens = pick(running.tokens, parents)
    tokens[:, :, now] = words.view(B, n * k).gather(1, index)
    return Hypotheses(tokens, totals, torch.full_like(index, now + 1)), parents


def _forbid(log_probs: Tensor, written: Tensor, settings: BeamSettings) -> None:
    """Take the probability of words that may not come: log_probs (rows, V), written (rows, now)"""
    now, n = written.shape[1], settings.no_repeat_ngram
    if settings.eos is not None and now < settings.min_length:
        log_probs[:, settings.eos] = -torch.inf
    if n and now >= n:
        ngrams = written.unfold(1, n, 1)  # (rows, now - n + 1, n)
        begun = (ngrams[:, :, :-1] == written[:, None, now - n + 1 :]).all(dim=-1)
        rows, at = begun.nonzero(as_tuple=True)
        log_probs[rows, ngrams[rows, at, -1]] = -torch.inf


def _ends(words: Tensor, settings: BeamSettings) -> Tensor:
    """Which candidates end with their word."""
    if settings.eos is None:
        return torch.zeros_like(words, dtype=torch.bool)
    return torch.isin(words, settings.eos)


def _collect(
    ended: Hypotheses,
    candidates: Hypotheses,
    ends: Tensor,
    open_: Tensor,
    settings: BeamSettings,
    written: int,
) -> Hypotheses:
    """The best n of what had ended and what ends now; only the first n candidates may end."""
    n = settings.num_beams
    if settings.early_stopping is True:
        open_ = open_ & ended.scores.isneginf().any(dim=1)
    counts = ends[:, :n] & open_[:, None]
    scores = candidates.scores[:, :n] / written**settings.length_penalty
    new = Hypotheses(
        candidates.tokens[:, :n],
        scores.masked_fill(~counts, -torch.inf),
        candidates.lengths[:, :n],
    )
    return ended.joined(new).best(n)


def _can_improve(
    running: Hypotheses, ended: Hypotheses, settings: BeamSettings, written: int, most: Tensor
) -> Tensor:
    """Whether the best running beam of each sentence could still beat the worst that ended: (B,)"""
    full = ~ended.scores.isneginf().any(dim=1)
    if settings.early_stopping is True:
        return ~full
    length: int | Tensor = written
    if settings.early_stopping == "never" and settings.length_penalty > 0:
        length = most
    possible = running.scores[:, 0] / length**settings.length_penalty
    if settings.step_penalty < 0:
        # rewards can raise a score with each word: by all that may come, over the better length
        total = running.scores[:, 0] - settings.step_penalty * (most - written)
        ends = (total / written**settings.length_penalty, total / most**settings.length_penalty)
        possible = torch.maximum(*ends)
    worst = ended.scores.amin(dim=1)
    improves: Tensor = ~full | (possible > worst)
    return improves


def top_of_rows(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """x.topk(k), faster for rows much longer than k: x (rows, V) -> values and indices (rows, k).

    The k best lie in the k groups with the best maxima, so that few words need be sorted.
    """
    groups = x.shape[1] // GROUP
    if groups < 4 * k:
        values, index = x.topk(k)
        return values, index
    # group g holds columns g, g + groups, ...: maxima over them read whole rows
    grouped = x[:, : groups * GROUP].unflatten(1, (GROUP, groups))
    chosen = grouped.amax(dim=1).topk(k, sorted=False).indices  # (rows, k)
    members = grouped.gather(2, chosen[:, None].expand(-1, GROUP, -1)).flatten(1)
    rest = x[:, groups * GROUP :]
    columns = (torch.arange(GROUP, device=x.device)[:, None] * groups + chosen[:, None]).flatten(1)
    last = torch.arange(groups * GROUP, x.shape[1], device=x.device).expand(x.shape[0], -1)
    values, at = torch.cat((members, rest), dim=1).topk(k)
    return values, torch.cat((columns, last), dim=1).gather(1, at)


def pick(x: Tensor, index: Tensor) -> Tensor:
    """Rows of each sentence: x (B, n, L), index (B, m) -> (B, m, L)"""
    return x.gather(1, index[:, :, None].expand(-1, -1, x.shape[2]))
