"""The text on which an export is compared with its network, and the score of both on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from talkconv.conventions import SUMMARIZATION
from talkconv.evaluation.bleu import corpus_bleu
from talkconv.evaluation.evaluate_files import lines_of
from talkconv.evaluation.evaluate_run import data_of, generation_settings
from talkconv.evaluation.rouge import rouge
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.runs.open_run import Run
from talkconv.serving.evaluate_export import losses_of, stream_of
from talkconv.serving.exported_network import ExportedNetwork
from talkconv.serving.text_codec import TextCodec

# A language model writes so many tokens after each line, and reads blocks of so many for its loss.
CONTINUATION, BLOCK = 32, 512


@dataclass(frozen=True)
class ValidationLines:
    """Lines of a validation set: what the network reads, and what it should answer if known."""

    name: str
    sources: Sequence[str]
    # the references of a translation or a summary; None for a language model, or where unknown
    targets: Sequence[str] | None
    # how the network generates, with sources cut as those of its training were
    settings: GenerationSettings


def validation_lines(
    run: Run, data: Path | None, lines: Path | None, limit: int | None
) -> ValidationLines:
    """Return the validation set of the run's data, or the lines of a file; at most `limit`."""
    if lines is not None:
        sources, targets = lines_of(lines), None
        name, settings = str(lines), run.card.generation
    else:
        prepared = data_of(run, data)
        name, settings = f"{prepared.folder}, valid", generation_settings(run, prepared)
        pairs = run.model.config.is_encoder_decoder
        sources, targets = prepared.texts("valid") if pairs else (prepared.lines("valid"), None)
    rows = _spread(len(sources), limit)
    if not rows:
        raise ValueError(f"{name} must have at least one line to compare networks on, got none")
    chosen = None if targets is None else [targets[row] for row in rows]
    return ValidationLines(name, [sources[row] for row in rows], chosen, settings)


def _spread(count: int, limit: int | None) -> list[int]:
    """Return at most `limit` of the numbers below `count`, evenly spread.

    >>> _spread(6, 3)
    [0, 2, 4]
    """
    kept = count if limit is None else min(count, limit)
    return [row * count // kept for row in range(kept)]


@dataclass(frozen=True)
class ValidationScore:
    """One number for the quality of a network's outputs, and its name."""

    name: str
    value: float

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f}" if self.name != "loss" else f"loss {self.value:.4f}"

    def loss_to(self, other: "ValidationScore") -> float:
        """Return by how much `other` is worse than this score; below 0 it is better."""
        better_is_lower = self.name == "loss"
        return (other.value - self.value) * (1 if better_is_lower else -1)


def score_of_outputs(
    task: str, outputs: Sequence[str], targets: Sequence[str], codec: TextCodec
) -> ValidationScore:
    """Return BLEU of translations, on words, or the mean ROUGE of summaries."""
    if task == SUMMARIZATION:
        scores = [score.value for score in rouge(list(outputs), list(targets))]
        return ValidationScore("ROUGE", sum(scores) / len(scores))
    words = [list(map(codec.tokenized_text, lines)) for lines in (outputs, targets)]
    return ValidationScore("BLEU", corpus_bleu(words[0], words[1], "tokenized").value)


def loss_of(network: ExportedNetwork, codec: TextCodec, lines: Sequence[str]) -> ValidationScore:
    """Return the mean loss of a language model in nats per token, over blocks of the lines."""
    stream = stream_of(codec, list(lines))
    total = 0.0
    for begin in range(0, len(stream) - 1, BLOCK):
        piece = stream[None, begin : begin + BLOCK + 1]
        logits = network.begin(1).logits(piece[:, :-1], piece.shape[1] - 1)
        total += losses_of(logits, piece[:, 1:])
    return ValidationScore("loss", total / (len(stream) - 1))
