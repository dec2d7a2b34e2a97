"""Perplexity of an unbroken stream of tokens, each predicted from those before it.

A network that was trained on blocks reads blocks here too: each scores its last tokens and sees
`context` more before them, so that no token is predicted from too little. Or the stream is read
once, with the cache: then a token is predicted from all before it, at positions far beyond those
of training.
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
    """Blocks of `block` tokens, of which the first `context` are there for the others' sake.

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
    """All at once, as far as the network remembers: the cache carries over from chunk to chunk."""
    stream = _stream(model, tokens)
    cache = model.empty_cache(1)
    nats = 0.0
    for begin in range(0, len(tokens), chunk):
        piece = stream[None, begin : begin + chunk + 1].to(model.device)
        losses = model.token_losses(piece[:, :-1], piece[:, 1:], cache)
        nats += float(losses.double().sum())
    return Perplexity(nats, len(tokens), words, "one stream, all tokens before")


def _stream(model: TaLKConvForCausalLM, tokens: Sequence[int]) -> Tensor:
    """The tokens after the end of a line, from which the first of them is predicted."""
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
    """Inputs (B, T) and the targets (B, t) of their last t; each token of the stream but the first
    is a target once."""
    blocks = blocks_of(len(stream), block, context)
    # the first blocks have less before them, the last one fewer targets
    for _, alike in itertools.groupby(blocks, lambda w: (w.begin - w.first, w.end - w.begin)):
        while batch := list(itertools.islice(alike, rows)):
            inputs = torch.stack([stream[first:end] for first, _, end in batch])
            targets = torch.stack([stream[begin + 1 : end + 1] for _, begin, end in batch])
            yield inputs, targets
