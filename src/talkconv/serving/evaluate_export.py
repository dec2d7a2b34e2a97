"""Opens an export for `talkconv evaluate`, and reads its perplexity. It needs no torch."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from talkconv.data.prepared import Prepared
from talkconv.evaluation.evaluate_run import EvaluatedRun, context_of
from talkconv.evaluation.stream_blocks import Perplexity, blocks_of, words_of_lines
from talkconv.runs.card import RunCard
from talkconv.search.network import Floats, Ints
from talkconv.serving.export_card import ExportCard, network_folder
from talkconv.serving.exported_network import ExportedNetwork, log_softmax
from talkconv.serving.loading import load_codecs
from talkconv.serving.text_codec import TextCodec

# the tokens that a stream is read in at a time
CHUNK = 512


@dataclass(frozen=True)
class ExportedRun:
    """An export with the parts of a Run that scoring needs."""

    model: ExportedNetwork
    tokenizer: TextCodec
    target_tokenizer: TextCodec
    card: RunCard
    folder: Path
    weights: Path


def open_export(folder: Path, model: str | None = None) -> ExportedRun:
    """Open the network `model` of an export, float32 or int8."""
    card = ExportCard.read(folder)
    weights = network_folder(folder, model)
    return ExportedRun(
        ExportedNetwork(weights, card.network), *load_codecs(folder), card.run, folder, weights
    )


def perplexity_of_export(
    run: EvaluatedRun, prepared: Prepared, split: str, streaming: bool
) -> Perplexity:
    """Return the perplexity of a split, in blocks with context or as one stream."""
    lines = prepared.lines(split)
    stream = stream_of(run.tokenizer, lines)
    words, tokens = words_of_lines(lines), len(stream) - 1
    if streaming:
        step, nats = run.model.begin(1), 0.0
        for begin in range(0, tokens, CHUNK):
            piece = stream[None, begin : begin + CHUNK + 1]
            nats += losses_of(step.logits(piece[:, :-1], piece.shape[1] - 1), piece[:, 1:])
        return Perplexity(nats, tokens, words, "one stream, all tokens before")
    block, nats = prepared.settings.block, 0.0
    context = context_of(block)
    for first, begin, end in blocks_of(len(stream), block, context):
        targets = stream[None, begin + 1 : end + 1]
        logits = run.model.begin(1).logits(stream[None, first:end], targets.shape[1])
        nats += losses_of(logits, targets)
    return Perplexity(nats, tokens, words, f"blocks of {block} tokens, context {context}")


def stream_of(codec: TextCodec, lines: list[str]) -> Ints:
    """Return the tokens of lines after one another; each line follows the end of another one."""
    eos = codec.eos_token_id
    words = [[token for token in codec.encode(line) if token != eos] for line in lines]
    return np.array([eos, *(token for line in words for token in (*line, eos))])


def losses_of(logits: Floats, targets: Ints) -> float:
    """Return the sum of -log P of the targets: logits (B, t, V), targets (B, t)."""
    chosen = np.take_along_axis(log_softmax(logits), targets[:, :, None], axis=2)
    return -float(chosen.sum(dtype=np.float64))
