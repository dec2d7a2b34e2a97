"""Validation: the loss of all sentences, and the BLEU or ROUGE of generated ones."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from talkconv.data.batching import Batches, examples_of
from talkconv.data.prepared import Prepared
from talkconv.data.tokenizer import TaLKConvTokenizer
from talkconv.evaluation.bleu import corpus_bleu
from talkconv.evaluation.rouge import rouge
from talkconv.generation.text_generator import generate_texts
from talkconv.models.generative import TaLKConvGenerativeModel
from talkconv.models.loss import smoothed_cross_entropy, without_padding
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.training.recipe import Recipe

Gather = Callable[[list[Any]], list[Any]]
Tell = Callable[[str], object]


class Validation:
    """Validates the network of a run on its validation set."""

    def __init__(self, prepared: Prepared, tokenizer: TaLKConvTokenizer, recipe: Recipe) -> None:
        if "valid" not in prepared.splits():
            raise ValueError(
                f"{prepared.folder} must have a validation set, got {prepared.splits()}: add its "
                "files to the raw ones and prepare them again"
            )
        examples = examples_of(prepared.split("valid"))
        # Long sentences of a validation set are not dropped, so a batch must have room for them.
        longest = max(int(lengths.max()) for lengths in examples.lengths)
        self.batches = Batches(examples, tokens=max(recipe.training.tokens, longest))
        self.tokenizer = tokenizer
        self._by = recipe.training.validate_by
        self._generation = recipe.generation
        self._texts: tuple[list[str], list[str]] = ([], [])
        if self._by != "loss":
            self._texts = spread(prepared.texts("valid"), recipe.training.validate_limit)

    def __call__(
        self,
        model: TaLKConvGenerativeModel,
        *,
        sum_all: Callable[[Tensor], Tensor],
        gather: Gather,
        process: int,
        processes: int,
        tell: Tell,
    ) -> dict[str, float]:
        """Return `loss` and `perplexity`, and the scores by which the best network is chosen."""
        share = dict(process=process, processes=processes)
        tell("validate")
        loss = validation_loss(model, self.batches, sum_all, **share)
        values = {"loss": loss, "perplexity": math.exp(min(loss, 700))}
        if self._by == "loss":
            return values
        scores = score_outputs(
            self._by,
            model,
            self.tokenizer,
            self._texts,
            self._generation,
            gather,
            tell=lambda done, total: tell(f"validate {done}/{total}"),
            **share,
        )
        return {**values, **scores}


def validation_loss(
    model: TaLKConvGenerativeModel,
    batches: Batches,
    sum_all: Callable[[Tensor], Tensor],
    *,
    process: int = 0,
    processes: int = 1,
) -> float:
    """Return the mean negative log-likelihood of a target token, without label smoothing.

    Each process computes its share of the batches, and `sum_all` sums a tensor over all processes.
    """
    device = next(model.parameters()).device
    total = torch.zeros(2, dtype=torch.float64, device=device)
    for round, batch in enumerate(batches.shared(process, processes)):
        inputs = {name: tensor.to(device) for name, tensor in batch.items()}
        loss, tokens = _summed_loss(model, inputs)
        # All processes of a sharded network must run the same number of batches, so a process
        # that has no batches left repeats one, which does not count.
        if round * processes + process < len(batches):
            total += torch.stack([loss.double(), tokens.double()])
    summed = sum_all(total)
    return float(summed[0] / summed[1])


def _summed_loss(
    model: TaLKConvGenerativeModel, inputs: dict[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the sum of the losses of all tokens, and the number of tokens."""
    config, labels = model.config, inputs["labels"]
    out: Any = model(**inputs, num_items_in_batch=1)
    shift = 0 if config.is_encoder_decoder else 1
    targets = labels[:, shift:]
    tokens = (without_padding(targets, config.pad_token_id) >= 0).sum()
    if not config.label_smoothing:
        return out.loss, tokens
    loss = smoothed_cross_entropy(
        out.logits[:, : out.logits.shape[1] - shift],
        targets,
        label_smoothing=0.0,
        pad_token_id=config.pad_token_id,
        num_items=1,
    )
    return loss, tokens


def score_outputs(
    by: str,
    model: TaLKConvGenerativeModel,
    tokenizer: Any,
    texts: tuple[Sequence[str], Sequence[str]],
    settings: GenerationSettings,
    gather: Gather,
    *,
    process: int = 0,
    processes: int = 1,
    tell: Callable[[int, int], object] = lambda done, total: None,
) -> dict[str, float]:
    """Return the BLEU or ROUGE of the texts that the network generates.

    Each process generates every `processes`-th text, and `gather` joins the lists of all processes.
    """
    sources, references = texts
    mine = range(process, len(sources), processes)
    written: list[tuple[int, str]] = []
    outputs = generate_texts(model, tokenizer, [sources[row] for row in mine], settings)
    for row, output in zip(mine, outputs, strict=True):
        tell(len(written), len(mine))
        written.append((row, output[0].text))
    hypotheses = [text for _, text in sorted(gather(written))]
    if by == "bleu":
        words = [list(map(tokenizer.tokenized_text, lines)) for lines in (hypotheses, references)]
        return {"bleu": corpus_bleu(words[0], words[1], "tokenized").value}
    scores = [score.value for score in rouge(hypotheses, references)]
    names = ("rouge1", "rouge2", "rougeL")
    return {"rouge": sum(scores) / len(scores), **dict(zip(names, scores, strict=True))}


def spread(texts: tuple[list[str], list[str]], limit: int | None) -> tuple[list[str], list[str]]:
    """Return at most `limit` of the pairs, evenly spread over the whole set.

    >>> spread((list("abcdef"), list("ABCDEF")), 3)
    (['a', 'c', 'e'], ['A', 'C', 'E'])
    """
    sources, targets = texts
    if limit is None or limit >= len(sources):
        return texts
    rows = [row * len(sources) // limit for row in range(limit)]
    return [sources[row] for row in rows], [targets[row] for row in rows]
