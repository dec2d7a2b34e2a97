"""How far each token of a sentence looks, in every layer and head of a trained network."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypedDict

import torch
from torch import Tensor, nn
from transformers import BatchEncoding

from talkconv.data.tokenizer import TaLKConvTokenizer
from talkconv.demo.translations import Translation
from talkconv.layers.talk_conv import TaLKConv
from talkconv.models import TaLKConvForConditionalGeneration


class Layer(TypedDict):
    """Reaches in tokens; left and right are indexed [head][token]."""

    l_max: int
    r_max: int
    left: list[list[float]]
    right: list[list[float]]


class Side(TypedDict):
    """Of the encoder or the decoder: the tokens it reads, and what each layer looks at."""

    tokens: list[str]
    layers: list[Layer]


class Look(TypedDict):
    """A sentence as the page shows it."""

    text: str
    encoder: Side
    decoder: Side


# what the page shows windows over: of each kind the longest sentence that still fits a phone
KINDS = {
    "a separable verb": r" (ab|an|auf|ein|mit|vor|weg|zu|zurück)\.$",
    "the verb last": r", (weil|obwohl|während|bevor) ",
    "a relative clause": r", (der|die|das|den|dem|denen) ",
    "an object first": r"^(Den|Dem|Der \w+ hilft|Diesen|Einen) ",
    "a number": r"und(zwan|drei|vier|fünf|sech|sieb|acht|neun)\w+ ",
    "a question": r"\?$",
}
MOST_TOKENS, CANDIDATES = 18, 20


def looks(
    model: TaLKConvForConditionalGeneration,
    tokenizer: TaLKConvTokenizer,
    translations: Sequence[Translation],
) -> list[Look]:
    """Windows over a sentence of each kind, a rightly translated one if there is any."""
    found = []
    for kind, pattern in KINDS.items():
        fitting = [one for one in translations if re.search(pattern, one.source)]
        right = [one for one in fitting if one.right]
        best = _longest(tokenizer, right) or _longest(tokenizer, fitting)
        if best is not None:
            source = _ids(tokenizer(best.source))
            target = _ids(tokenizer(text_target=best.output))
            found.append(_look(model, tokenizer, f"{best.source} ({kind})", source, target))
    return found


def _longest(
    tokenizer: TaLKConvTokenizer, translations: Sequence[Translation]
) -> Translation | None:
    """The longest of the first ones that is not too long."""
    lengths = {one: len(_ids(tokenizer(one.source))) for one in translations[:CANDIDATES]}
    short = [one for one, length in lengths.items() if length <= MOST_TOKENS]
    return max(short, key=lambda one: lengths[one], default=None)


def _ids(encoded: BatchEncoding) -> list[int]:
    ids: list[int] = encoded["input_ids"]
    return ids


def _look(
    model: TaLKConvForConditionalGeneration,
    tokenizer: TaLKConvTokenizer,
    text: str,
    source: list[int],
    target: list[int],
) -> Look:
    encoder, decoder = windows_of(model, source, target)
    # the decoder reads the end of the sentence before, then what it has written
    read = [tokenizer.eos_token_id, *target[:-1]]
    return Look(
        text=text,
        encoder=Side(tokens=_pieces(tokenizer, source), layers=encoder),
        decoder=Side(tokens=_pieces(tokenizer, read), layers=decoder),
    )


@torch.inference_mode()
def windows_of(
    model: TaLKConvForConditionalGeneration, source: list[int], target: list[int]
) -> tuple[list[Layer], list[Layer]]:
    """What encoder and decoder look at, over the ids of a source and of its translation.

    The decoder's tokens are those it reads: the start, then the translation without its end.
    """
    model.train(False)
    labels = torch.tensor([target])
    with _recorded(model.encoder) as encoder, _recorded(model.decoder) as decoder:
        model(input_ids=torch.tensor([source]), labels=labels)
    return encoder, decoder


@contextmanager
def _recorded(stack: nn.Module) -> Iterator[list[Layer]]:
    """What the TaLK layers of a stack predict while this is open, the first layer first."""
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

    layers = [module for module in stack.modules() if isinstance(module, TaLKConv)]
    hooks = [layer.register_forward_pre_hook(record) for layer in layers]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _reach(offsets: Tensor, tokens_max: int) -> list[list[float]]:
    """Offsets (1, T, H) -> tokens, [head][token]; hundredths are more than an eye can see."""
    reach: list[list[float]] = (offsets[0].T * tokens_max).tolist()
    return [[round(tokens, 2) for tokens in head] for head in reach]


def _pieces(tokenizer: TaLKConvTokenizer, ids: list[int]) -> list[str]:
    return pieces_of([str(tokenizer.convert_ids_to_tokens(token)) for token in ids])


def pieces_of(tokens: list[str]) -> list[str]:
    """Subwords as one reads them: a space ends each word, and the end of a sentence is a sign.

    >>> pieces_of(["einund", "zwanzig</w>", "Hun", "de</w>", "</s>"])
    ['einund', 'zwanzig ', 'Hun', 'de ', '■']
    """
    return [
        "■" if token == "</s>" else token.replace("</w>", " ").replace("&apos;", "'")
        for token in tokens
    ]
