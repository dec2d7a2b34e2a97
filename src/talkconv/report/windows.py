"""Reads the windows of every layer and head of a trained network over a sentence."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from talkconv.data.tokenizer import TaLKConvTokenizer
from talkconv.layers.talk_conv import TaLKConv
from talkconv.models import TaLKConvForConditionalGeneration
from talkconv.report.looks import Layer, Look, Side, pieces_of, rounded


def look_at(
    model: TaLKConvForConditionalGeneration,
    tokenizer: TaLKConvTokenizer,
    text: str,
    source: list[int],
    target: list[int],
) -> Look:
    """Return the windows over the ids of a source and of its translation, under the name `text`."""
    encoder, decoder = windows_of(model, source, target)
    # the decoder reads an end token first, then its own output
    read = [tokenizer.eos_token_id, *target[:-1]]
    return Look(
        text=text,
        encoder=Side(tokens=_pieces(tokenizer, source), layers=encoder),
        decoder=Side(tokens=_pieces(tokenizer, read), layers=decoder),
    )


@torch.inference_mode()
def windows_of(
    model: TaLKConvForConditionalGeneration, source: Sequence[int], target: Sequence[int]
) -> tuple[list[Layer], list[Layer]]:
    """Return the windows of encoder and decoder over the ids of a source and of its translation.

    The decoder's tokens are those it reads: the start, then the translation without its end.
    """
    model.train(False)
    labels = torch.tensor([target])
    with recorded(model.encoder) as encoder, recorded(model.decoder) as decoder:
        model(input_ids=torch.tensor([source]), labels=labels)
    return encoder, decoder


@contextmanager
def recorded(network: nn.Module) -> Iterator[list[Layer]]:
    """Collect the windows of a network's TaLK layers inside the `with` block, first layer first.

    The network must be in evaluation mode and read one sequence.
    """
    found: list[Layer] = []

    def record(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        assert isinstance(layer, TaLKConv)
        left, right = layer.offsets(inputs[0])
        found.append(
            Layer(
                l_max=layer.l_max,
                r_max=layer.r_max,
                left=_reach(left, layer.l_max),
                right=_reach(torch.zeros_like(left) if right is None else right, layer.r_max),
            )
        )

    layers = [module for module in network.modules() if isinstance(module, TaLKConv)]
    hooks = [layer.register_forward_pre_hook(record) for layer in layers]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _reach(offsets: Tensor, tokens_max: int) -> list[list[float]]:
    """Return offsets (1, T, H) as reaches in tokens, indexed [head][token]."""
    return rounded((offsets[0].T * tokens_max).tolist())


def _pieces(tokenizer: TaLKConvTokenizer, ids: list[int]) -> list[str]:
    return pieces_of([str(tokenizer.convert_ids_to_tokens(token)) for token in ids])
