"""Measures how far the windows of a trained network reach on a test set, layer by layer.

A window of token i in a sentence of n tokens covers the whole sentence if it reaches at least i
tokens to the left and n - 1 - i to the right. In a decoder, it must reach all tokens so far.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch

from talkconv.conventions import LANGUAGE_MODELLING
from talkconv.data.prepared import Prepared
from talkconv.evaluation.evaluate_run import data_of, generation_settings
from talkconv.generation.text_generator import TextGenerator
from talkconv.report.looks import Layer, Look
from talkconv.report.windows import look_at, recorded, windows_of
from talkconv.runs.open_run import Run, open_run

SPLIT = "test"


class LayerReach(TypedDict):
    """The mean reach of each head in tokens, and how often its windows cover a whole sentence."""

    l_max: int
    r_max: int
    left: list[float]
    right: list[float]
    whole: list[float]


class WindowStatistics(TypedDict):
    """The facts about the windows of a run that the page shows."""

    split: str
    # sentences, or blocks of a language model
    sequences: int
    encoder: list[LayerReach]
    decoder: list[LayerReach]
    # the sentences that are drawn in full
    looks: list[Look]
    # identifies the weights that were measured
    weights: str


@dataclass
class _Sums:
    """Sums over the tokens of one layer, (H,) each."""

    l_max: int
    r_max: int
    tokens: int = 0
    left: Any = 0.0
    right: Any = 0.0
    whole: Any = field(default=0.0)

    def add(self, layer: Layer) -> None:
        left, right = np.array(layer["left"]), np.array(layer["right"])  # (H, T) each
        length = left.shape[1]
        before = np.arange(length)
        after = before[::-1] if layer["r_max"] else 0
        self.tokens += length
        self.left += left.sum(axis=1)
        self.right += right.sum(axis=1)
        self.whole += ((left >= before) & (right >= after)).sum(axis=1)

    def mean(self) -> LayerReach:
        means = (
            (sums / self.tokens).round(4).tolist() for sums in (self.left, self.right, self.whole)
        )
        left, right, whole = means
        return LayerReach(l_max=self.l_max, r_max=self.r_max, left=left, right=right, whole=whole)


def measure_windows(
    folder: Path, sentences: Sequence[str] = (), most: int | None = None
) -> WindowStatistics:
    """Return the windows of a run on its test set, or on the first `most` sequences of it."""
    run = open_run(folder)
    prepared = data_of(run, None)
    sides: tuple[list[_Sums], list[_Sums]] = ([], [])
    sequences = 0
    for windows in _windows(run, prepared, most):
        sequences += 1
        for sums, layers in zip(sides, windows, strict=True):
            if not sums:
                sums += [_Sums(layer["l_max"], layer["r_max"]) for layer in layers]
            for total, layer in zip(sums, layers, strict=True):
                total.add(layer)
    encoder, decoder = ([each.mean() for each in sums] for sums in sides)
    return WindowStatistics(
        split=SPLIT,
        sequences=sequences,
        encoder=encoder,
        decoder=decoder,
        looks=_looks(run, prepared, sentences),
        weights=weights_name(run.weights),
    )


def weights_name(folder: Path) -> str:
    """Return a name that changes with a network's weights."""
    return sha256((folder / "model.safetensors").read_bytes()).hexdigest()[:16]


def _windows(
    run: Run, prepared: Prepared, most: int | None
) -> Iterator[tuple[list[Layer], list[Layer]]]:
    """Yield the windows over each sequence of the test set, of encoder and decoder."""
    model: Any = run.model
    rows = prepared.split(SPLIT)
    for row in rows.select(range(min(most or len(rows), len(rows)))):
        if run.card.task != LANGUAGE_MODELLING:
            yield windows_of(model, row["source"], row["target"])
            continue
        with torch.inference_mode(), recorded(model) as layers:
            model(input_ids=torch.tensor([row["tokens"]]))
        yield [], layers


def _looks(run: Run, prepared: Prepared, sentences: Sequence[str]) -> list[Look]:
    """Return the windows over sentences and over the network's translations."""
    model: Any = run.model
    tokenizer: Any = run.tokenizer
    settings = generation_settings(run, prepared)
    generator = TextGenerator(model, tokenizer, settings, run.target_tokenizer)
    looks = []
    for sentence, (output,) in zip(sentences, generator.outputs(sentences), strict=True):
        source = tokenizer(sentence)["input_ids"]
        target = [*output.tokens, tokenizer.eos_token_id]
        looks.append(look_at(model, tokenizer, sentence, source, target))
    return looks
