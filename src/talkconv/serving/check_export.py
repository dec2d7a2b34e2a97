"""Compares an exported network with the PyTorch network that it was made of."""

from dataclasses import fields
from typing import Any

import numpy as np
import torch

from talkconv.models.base import TaLKConvPreTrainedModel
from talkconv.search.network import Floats, Ints
from talkconv.serving.export_card import NetworkShape
from talkconv.serving.exported_network import ExportedNetwork, ExportedStep

# How far the logits of the two networks may differ, relative to the largest logit of an input, or
# to 1 if that is larger. Both round in float32: a PyTorch network with logits of 20 differs by 1e-5
# from itself in float64. And the number of random inputs on which they are compared.
LIMIT, INPUTS = 1e-5, 100


def shape_of(network: TaLKConvPreTrainedModel) -> NetworkShape:
    """Return the sizes and special tokens of a network."""
    names = {each.name for each in fields(NetworkShape)} - {"parameters"}
    values = {name: getattr(network.config, name) for name in names}
    values["encoder_r_max"] = values["encoder_r_max"] or []
    return NetworkShape(**values, parameters=network.num_parameters())


def largest_difference(
    network: TaLKConvPreTrainedModel, exported: ExportedNetwork, inputs: int
) -> float:
    """Return the largest difference between the logits of both networks, relative as LIMIT is.

    Each input is a batch of padded sentences, which the export reads in several pieces; between two
    of them beams are opened and picked.
    """
    return max(
        _difference(network, exported, np.random.default_rng(seed)) for seed in range(inputs)
    )


def _difference(
    network: TaLKConvPreTrainedModel, exported: ExportedNetwork, random: np.random.Generator
) -> float:
    B, n = int(random.integers(1, 6)), int(random.integers(1, 6))
    longest = int(random.choice([3, 12, 40, 150]))
    step, inputs, begun = _begin(exported, random, B, longest)
    written, found = begun, step.logits(begun, 1)
    for before in (1, n):
        parents = _parents(random, B, before, n)
        piece = _tokens(random, exported.config.vocab_size, exported.config, B * n, longest)
        written = np.concatenate((written[parents], piece), axis=1)
        found = step.logits(piece, 1, parents)
    wanted = _logits_of(network, written, inputs, n)
    return float(np.abs(found[:, -1] - wanted).max() / max(1.0, np.abs(wanted).max()))


def _begin(
    exported: ExportedNetwork, random: np.random.Generator, B: int, longest: int
) -> tuple[ExportedStep, dict[str, Ints], Ints]:
    """Return a step before its first token, what PyTorch reads beside it, and the first tokens."""
    config = exported.config
    if config.is_encoder_decoder:
        tokens = _tokens(random, config.source_vocab_size, config, B, longest)
        mask = _mask(random, tokens)
        start = np.full((B, 1), config.decoder_start_token_id or 0)
        step = exported.begin(B, exported.encode(tokens, mask))
        return step, {"input_ids": tokens, "attention_mask": mask}, start
    prompt = _tokens(random, config.vocab_size, config, B, longest)
    # the prompts of a language model are padded on their left
    mask = _mask(random, prompt)[:, ::-1]
    return exported.begin(B, mask=mask), {"attention_mask": mask}, prompt


def _tokens(
    random: np.random.Generator, words: int, config: NetworkShape, rows: int, longest: int
) -> Ints:
    """Return random tokens (rows, t), at most `longest` of them and none of them padding."""
    tokens = random.integers(0, words, (rows, random.integers(1, longest + 1)))
    pad = config.pad_token_id or 0
    found: Ints = np.where(tokens == pad, (pad + 1) % words, tokens)
    return found


def _mask(random: np.random.Generator, tokens: Ints) -> Ints:
    """Return a mask (rows, t) with random padding on the right; each row keeps one token."""
    lengths = random.integers(1, tokens.shape[1] + 1, (len(tokens), 1))
    lengths[0] = tokens.shape[1]
    mask: Ints = (np.arange(tokens.shape[1]) < lengths).astype(np.int64)
    return mask


def _parents(random: np.random.Generator, B: int, before: int, n: int) -> Ints:
    """Return which of the `before` rows of its sentence each of n rows continues: (B * n,)."""
    chosen = random.integers(0, before, (B, n)) + np.arange(B)[:, None] * before
    return chosen.reshape(-1)


@torch.inference_mode()
def _logits_of(
    network: TaLKConvPreTrainedModel, written: Ints, inputs: dict[str, Ints], n: int
) -> Floats:
    """Return the logits of the PyTorch network after the last token of each row."""
    given = {name: torch.from_numpy(value.copy()) for name, value in inputs.items()}
    model: Any = network
    tokens = torch.from_numpy(written)
    if network.config.is_encoder_decoder:
        answer = model(**given, decoder_input_ids=tokens)
    else:
        mask = given["attention_mask"].repeat_interleave(n, dim=0)
        rest = torch.ones(len(tokens), tokens.shape[1] - mask.shape[1], dtype=mask.dtype)
        answer = model(tokens, attention_mask=torch.cat((mask, rest), dim=1))
    logits: Floats = answer.logits[:, -1].numpy()
    return logits
