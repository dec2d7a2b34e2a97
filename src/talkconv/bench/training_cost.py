"""Estimates the cost of a training from one small batch: operations, memory and time.

Operations and activations grow with the tokens of a batch, so those of the recipe's batches follow
from a small batch on this machine. Only matrix products and attention are counted as operations.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from talkconv.bench.measure import Timing, seconds_of
from talkconv.conventions import LANGUAGE_MODELLING, SUMMARIZATION
from talkconv.training.fit import build_model
from talkconv.training.recipe import Recipe
from talkconv.training.schedule import make_optimizer

# The recipes of the paper's larger networks are written for so many processes.
PROCESSES = {
    "wmt16_en_de": 8,
    "wmt14_en_fr": 8,
    "cnn_dailymail_standard": 8,
    "cnn_dailymail_deep": 8,
    "wikitext103": 8,
}
# Vocabularies of recipes that take all words of their corpus.
WORDS = {"wikitext103": 267_744, "wikitext2": 33_278}
SENTENCE, SUMMARY = 30, 60
# In half precision, norms, softmax and the loss still keep float32 tensors.
HALF_SHARE = 0.6


@dataclass(frozen=True)
class Cost:
    """The cost of a recipe. A token is one of the longer side of a batch."""

    recipe: str
    parameters: int
    forward: float  # operations per token
    backward: float
    activations: float  # bytes per token, in the recipe's precision
    batch: int  # tokens in a batch of one process
    tokens: float  # in the whole training
    optimizer_values: int  # for each parameter
    is_half: bool
    seconds: float  # per token on this machine, in float32

    @property
    def weights(self) -> int:
        """Return the bytes of weights and gradients, and of half-precision copies."""
        return self.parameters * (8 + 2 * self.is_half)

    @property
    def optimizer(self) -> int:
        """Return the bytes of the optimizer's state."""
        return 4 * self.parameters * self.optimizer_values

    @property
    def memory(self) -> float:
        """Return the bytes that one process needs."""
        return self.weights + self.optimizer + self.activations * self.batch

    @property
    def operations(self) -> float:
        """Return the operations of the whole training."""
        return self.tokens * (self.forward + self.backward)


def cost_of(recipe: Recipe, *, tokens: int = 512, steps: int = 2) -> Cost:
    """Take a few steps on a batch of about `tokens` tokens and return what the recipe costs."""
    settings = recipe.training
    network = build_model(recipe, vocabulary_of(recipe)).train()
    optimizer = make_optimizer(network.parameters(), settings)
    batch, longest = batch_of(recipe, tokens)
    used = batch["labels"].shape[0] * longest
    with FlopCounterMode(display=False) as counter, _Saved(network) as saved:
        loss: Tensor = network(**batch).loss
        forward = counter.get_total_flops()
        loss.backward()
    backward = counter.get_total_flops() - forward

    def step() -> None:
        optimizer.zero_grad()
        network(**batch).loss.backward()
        optimizer.step()

    step()
    seconds = Timing.of([seconds_of(step) for _ in range(steps)]).median
    is_half = settings.precision != "fp32"
    processes = PROCESSES.get(recipe.name, 1)
    return Cost(
        recipe=recipe.name,
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        forward=forward / used,
        backward=backward / used,
        activations=saved.bytes / used * (HALF_SHARE if is_half else 1.0),
        batch=settings.tokens,
        tokens=float(settings.tokens * settings.accumulation * processes * settings.max_steps),
        optimizer_values=1 if settings.optimizer == "nag" else 2,
        is_half=is_half,
        seconds=seconds / used,
    )


def vocabulary_of(recipe: Recipe) -> int:
    """Return the size of the vocabulary, or a guess if only the prepared data has it."""
    return WORDS.get(recipe.name) or recipe.data.vocabulary or 10_000


def batch_of(recipe: Recipe, tokens: int) -> tuple[dict[str, Tensor], int]:
    """Return a batch of random words for the network, and the tokens of its longer side."""
    words = vocabulary_of(recipe)
    if recipe.task == LANGUAGE_MODELLING:
        source = target = recipe.data.block
    elif recipe.task == SUMMARIZATION:
        source, target = recipe.data.max_source_tokens or 400, SUMMARY
    else:
        source = target = SENTENCE
    rows = max(1, math.ceil(tokens / max(source, target)))
    labels = torch.randint(4, words, (rows, target))
    inputs = (
        labels if recipe.task == LANGUAGE_MODELLING else torch.randint(4, words, (rows, source))
    )
    return {"input_ids": inputs, "labels": labels}, max(source, target)


class _Saved:
    """Counts the bytes that autograd keeps for the backward, without the weights.

    Each storage is counted once.
    """

    def __init__(self, network: torch.nn.Module) -> None:
        self._seen = {each.untyped_storage().data_ptr() for each in network.parameters()}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._keep, lambda kept: kept)
        self.bytes = 0

    def _keep(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._seen:
            self._seen.add(storage.data_ptr())
            self.bytes += storage.nbytes()
        return tensor

    def __enter__(self) -> "_Saved":
        self._hooks.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks.__exit__(*error)
