"""The windows over a sentence, in the form of the pages. This needs no torch."""

from collections.abc import Sequence
from typing import TypedDict


class Layer(TypedDict):
    """The reaches of one layer in tokens. left and right are indexed [head][token]."""

    l_max: int
    r_max: int
    left: list[list[float]]
    right: list[list[float]]


class Side(TypedDict):
    """The tokens that an encoder or a decoder reads, and the windows of each layer over them."""

    tokens: list[str]
    layers: list[Layer]


class Look(TypedDict):
    """The windows of a network over a sentence and its translation."""

    text: str
    encoder: Side
    decoder: Side


class DecoderLook(TypedDict):
    """The windows of a language model, which has no encoder, over a text and its continuation."""

    text: str
    encoder: None
    decoder: Side


def rounded(reach: Sequence[Sequence[float]]) -> list[list[float]]:
    """Round reaches in tokens to hundredths. Smaller differences cannot be seen."""
    return [[round(float(tokens), 2) for tokens in head] for head in reach]


def pieces_of(tokens: list[str]) -> list[str]:
    """Return readable subwords: a space ends each word, and ■ is the end of a sentence.

    >>> pieces_of(["einund", "zwanzig</w>", "Hun", "de</w>", "</s>"])
    ['einund', 'zwanzig ', 'Hun', 'de ', '■']
    """
    return [
        "■" if token == "</s>" else token.replace("</w>", " ").replace("&apos;", "'")
        for token in tokens
    ]
