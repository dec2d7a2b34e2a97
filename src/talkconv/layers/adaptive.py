"""Adaptive input and softmax (Baevski and Auli, 2019): rare words have vectors of fewer channels.

Words are sorted by frequency and divided into bands at the cutoffs.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from talkconv.conventions import IGNORED_LABEL
from talkconv.layers.dropout import Dropout
from talkconv.layers.mixer import init_linear


def band_sizes(
    vocab_size: int, dim: int, cutoffs: Sequence[int], factor: int
) -> list[tuple[int, int]]:
    """Return (words, channels) of each band.

    The first band has all channels. Each later band has `factor` times fewer than the one before.
    """
    edges = [0, *cutoffs, vocab_size]
    if not cutoffs or any(end <= begin for begin, end in pairwise(edges)):
        raise ValueError(
            f"cutoffs must increase between 0 and vocab_size = {vocab_size}, got {list(cutoffs)}"
        )
    if factor < 1:
        raise ValueError(f"factor must be at least 1, got {factor=}")
    channels = [dim // factor**band for band in range(len(cutoffs) + 1)]
    if channels[-1] < 1:
        raise ValueError(
            f"every band must have at least one channel, got {dim=}, {factor=}: {channels} channels"
        )
    return [
        (end - begin, width) for (begin, end), width in zip(pairwise(edges), channels, strict=True)
    ]


def init_words(weight: nn.Parameter) -> None:
    """Draw word vectors that have length 1 on average, whatever their number of channels."""
    nn.init.normal_(weight, std=weight.shape[1] ** -0.5)


class AdaptiveInput(nn.Module):
    """Embeds words that are sorted by frequency: tokens (...) -> (..., dim).

    >>> AdaptiveInput(100, 16, cutoffs=[20, 60])(torch.tensor([[3, 99]])).shape
    torch.Size([1, 2, 16])
    """

    def __init__(
        self,
        vocab_size: int,
        dim: int,
        cutoffs: Sequence[int],
        factor: int = 4,
        *,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.dim = dim
        self.cutoffs = tuple(cutoffs)
        self.factor = factor
        bands = band_sizes(vocab_size, dim, cutoffs, factor)
        if padding_idx is not None and not 0 <= padding_idx < self.cutoffs[0]:
            raise ValueError(
                f"padding_idx must lie in the first band, 0 .. {self.cutoffs[0] - 1}, "
                f"got {padding_idx}"
            )
        self.embeddings = nn.ModuleList(
            nn.Embedding(words, width, padding_idx=None if band else padding_idx)
            for band, (words, width) in enumerate(bands)
        )
        self.projections = nn.ModuleList(
            init_linear(nn.Linear(width, dim, bias=False)) for _, width in bands
        )
        for embedding in self.embeddings:
            init_words(embedding.get_parameter("weight"))
        if padding_idx is not None:
            nn.init.zeros_(self.embeddings[0].get_parameter("weight")[padding_idx])

    def forward(self, tokens: Tensor) -> Tensor:
        edges = [0, *self.cutoffs, self.vocab_size]
        found = []
        for embedding, (begin, end) in zip(self.embeddings, pairwise(edges), strict=True):
            elsewhere = (tokens < begin) | (tokens >= end)
            vectors = embedding((tokens - begin).clamp(0, end - begin - 1))
            found.append(vectors.masked_fill(elsewhere[..., None], 0))
        # A word has zeros in all bands but its own, so one product with the joined projections
        # is enough, and its shape does not depend on the words.
        weights = tuple(projection.get_parameter("weight") for projection in self.projections)
        return F.linear(torch.cat(found, dim=-1), torch.cat(weights, dim=1))

    def extra_repr(self) -> str:
        return f"{self.vocab_size}, {self.dim}, cutoffs={list(self.cutoffs)}, factor={self.factor}"


class AdaptiveSoftmax(nn.Module):
    """Predicts the next word: hidden (..., dim) -> log-probabilities (..., vocab_size).

    The head chooses a word of the first band or one of the other bands, and a second softmax then
    chooses a word within that band. `tie` shares the parameters of an AdaptiveInput.

    >>> softmax = AdaptiveSoftmax(100, 16, cutoffs=[20, 60])
    >>> probabilities = softmax.log_prob(torch.randn(2, 16)).exp()
    >>> torch.allclose(probabilities.sum(dim=-1), torch.ones(2))
    True
    """

    def __init__(
        self,
        vocab_size: int,
        dim: int,
        cutoffs: Sequence[int],
        factor: int = 4,
        *,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.dim = dim
        self.cutoffs = tuple(cutoffs)
        self.factor = factor
        bands = band_sizes(vocab_size, dim, cutoffs, factor)
        # The shapes are those of AdaptiveInput, so that both can share one parameter.
        self.words = nn.ParameterList(torch.empty(words, width) for words, width in bands)
        self.projections = nn.ParameterList(torch.empty(dim, width) for _, width in bands[1:])
        self.clusters = init_linear(nn.Linear(dim, len(bands) - 1, bias=False))
        self.dropout = Dropout(dropout)
        for words in self.words:
            init_words(words)
        for projection in self.projections:
            nn.init.xavier_uniform_(projection)

    def tie(self, embedding: AdaptiveInput, *, projections: bool = True) -> "AdaptiveSoftmax":
        """Share the word vectors of `embedding` and, unless projections=False, its projections."""
        sources = [band.get_parameter("weight") for band in embedding.embeddings]
        ours, theirs = ([tuple(words.shape) for words in bands] for bands in (self.words, sources))
        if ours != theirs:
            raise ValueError(
                f"tied bands must have the same (words, channels), got {ours} and {theirs}"
            )
        for band, source in enumerate(sources):
            self.words[band] = source
        if projections:
            for tail, projection in enumerate(list(embedding.projections)[1:]):
                self.projections[tail] = projection.get_parameter("weight")
        return self

    def log_prob(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities of all words: (..., dim) -> (..., vocab_size)."""
        head = self._head(hidden).log_softmax(dim=-1)
        first = self.cutoffs[0]
        parts = [head[..., :first]]
        for tail in range(len(self.projections)):
            within = self._tail(tail, hidden).log_softmax(dim=-1)
            parts.append(within + head[..., first + tail, None])
        return torch.cat(parts, dim=-1)

    def loss(
        self,
        hidden: Tensor,
        targets: Tensor,
        *,
        ignore_index: int = IGNORED_LABEL,
        reduction: str = "mean",
    ) -> Tensor:
        """Return -log_prob of `targets` (...) given hidden (..., dim).

        It computes only the bands in which targets lie. `reduction` is "mean" or "sum" over the
        targets other than ignore_index, or "none", which gives those targets a loss of 0.
        """
        if targets.shape != hidden.shape[:-1]:
            raise ValueError(
                f"targets must have the shape of hidden without its channels, "
                f"{tuple(hidden.shape[:-1])}, got {tuple(targets.shape)}"
            )
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction must be mean, sum or none, got {reduction!r}")
        flat, words = hidden.flatten(0, -2), targets.flatten()
        words = words.masked_fill(words == ignore_index, IGNORED_LABEL)
        first = self.cutoffs[0]
        band = torch.bucketize(words, torch.tensor(self.cutoffs, device=words.device), right=True)
        choice = torch.where(band > 0, first + band - 1, words)
        losses = F.cross_entropy(
            self._head(flat), choice, ignore_index=IGNORED_LABEL, reduction="none"
        )
        for tail, begin in enumerate(self.cutoffs):
            rows = (band == tail + 1).nonzero().squeeze(1)
            within = self._tail(tail, flat[rows])
            found = F.cross_entropy(within, words[rows] - begin, reduction="none")
            losses = losses.index_add(0, rows, found)
        if reduction == "none":
            return losses.view(targets.shape)
        total = losses.sum()
        return total if reduction == "sum" else total / (words != IGNORED_LABEL).sum()

    def _head(self, hidden: Tensor) -> Tensor:
        """Return the head's logits: (..., dim) -> (..., cutoffs[0] + number of later bands)."""
        return F.linear(hidden, torch.cat((self.words[0], self.clusters.weight)))

    def _tail(self, tail: int, hidden: Tensor) -> Tensor:
        """Return the logits of the words of one later band: (..., dim) -> (..., words)."""
        return F.linear(self.dropout(hidden @ self.projections[tail]), self.words[tail + 1])

    def extra_repr(self) -> str:
        return f"{self.vocab_size}, {self.dim}, cutoffs={list(self.cutoffs)}, factor={self.factor}"
