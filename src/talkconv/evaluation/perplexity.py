"""Perplexity of a stream of tokens, each predicted from the tokens before it.

A network that was trained on blocks reads the stream in blocks. Only the last tokens of a block are
scored; the `context` tokens before them let each prediction see enough. The stream can also be read
once, with the cache. Then each token is predicted from all tokens before it, at positions far
beyond those of training.
"""

import itertools
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from talkconv.evaluation.stream_blocks import Perplexity, blocks_of
from talkconv.models import TaLKConvForCausalLM


@torch.inference_mode()
def perplexity(
    model: TaLKConvForCausalLM,
    tokens: Sequence[int],
    *,
    block: int = 512,
    context: int = 384,
    words: int | None = None,
    batch_tokens: int = 4096,
) -> Perplexity:
    """Compute the perplexity in blocks of `block` tokens, the first `context` as context only.

    >>> perplexity(model, [4, 7, 2], block=8, context=4).tokens  # doctest: +SKIP
    3
    """
    stream = _stream(model, tokens)
    nats = 0.0
    for inputs, targets in _batches(stream, block, context, max(1, batch_tokens // block)):
        losses = model.token_losses(inputs.to(model.device), targets.to(model.device))
        nats += float(losses.double().sum())
    return Perplexity(nats, len(tokens), words, f"blocks of {block} tokens, context {context}")


@torch.inference_mode()
def streamed_perplexity(
    model: TaLKConvForCausalLM,
    tokens: Sequence[int],
    *,
    words: int | None = None,
    chunk: int = 512,
) -> Perplexity:
    """Compute the perplexity of one stream. The cache is passed from chunk to chunk."""
    stream = _stream(model, tokens)
    cache = model.empty_cache(1)
    nats = 0.0
    for begin in range(0, len(tokens), chunk):
        piece = stream[None, begin : begin + chunk + 1].to(model.device)
        losses = model.token_losses(piece[:, :-1], piece[:, 1:], cache)
        nats += float(losses.double().sum())
    return Perplexity(nats, len(tokens), words, "one stream, all tokens before")


def _stream(model: TaLKConvForCausalLM, tokens: Sequence[int]) -> Tensor:
    """Return the tokens with an end token before them, from which the first is predicted."""
    if not tokens:
        raise ValueError("there must be at least one token, got none")
    eos = model.config.eos_token_id
    start = eos[0] if isinstance(eos, list) else eos
    if start is None:
        raise ValueError("perplexity needs eos_token_id in the model's config, got None")
    return torch.tensor([start, *tokens])


def _batches(
    stream: Tensor, block: int, context: int, rows: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield inputs (B, T) and the targets (B, t) of their last t tokens.

    Each token of the stream except the first is a target once.
    """
    blocks = blocks_of(len(stream), block, context)
    # The first blocks have less context and the last one has fewer targets, so they are separate.
    for _, alike in itertools.groupby(blocks, lambda w: (w.begin - w.first, w.end - w.begin)):
        while batch := list(itertools.islice(alike, rows)):
            inputs = torch.stack([stream[first:end] for first, _, end in batch])
            targets = torch.stack([stream[begin + 1 : end + 1] for _, begin, end in batch])
            yield inputs, targets
