"""Engines that translate texts: our network in PyTorch and in ONNX Runtime, and a Transformer.

A network with random weights has no words, so its texts are numbers: each is the id of a word.
"""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from talkconv.bench.marian import make_marian, translate_with_ctranslate2, translate_with_marian
from talkconv.conventions import TRANSLATION
from talkconv.generation.text_model import TextModel
from talkconv.runs.generation_settings import GenerationSettings

# translates texts, all of them together, with so many beams
Engine = Callable[[Sequence[str], int], list[str]]
# returns how many words a translation of these texts has
Length = Callable[[Sequence[str]], int]

OURS, ONNX, ONNX_INT8 = "talkconv", "talkconv, ONNX float32", "talkconv, ONNX int8"
MARIAN = "MarianMT"
CTRANSLATE2 = {f"CTranslate2, {precision}": precision for precision in ("float32", "int8")}
# more tokens than any batch has
_ALL_TOGETHER = 1 << 30


class NumberTokenizer:
    """Reads and writes texts of numbers, each the id of a word.

    >>> NumberTokenizer().decode([17, 4], skip_special_tokens=True)
    '17 4'
    """

    eos_token_id = None

    def __call__(self, text: str) -> Mapping[str, list[int]]:
        """Return the ids of a text as `input_ids`."""
        return {"input_ids": [int(word) for word in text.split()]}

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return the text of ids."""
        return " ".join(map(str, token_ids))


def random_model(network: Any, words: int) -> TextModel:
    """Return a model of random weights, whose translations all have `words` words."""
    network.config.eos_token_id = None
    settings = GenerationSettings(max_length=words, max_ratio=0, max_extra=words)
    return TextModel(network, NumberTokenizer(), settings, TRANSLATION)


def random_texts(count: int, words: int, vocabulary: int) -> list[str]:
    """Return texts of random numbers; the first and the last ids are those of special tokens."""
    ids = torch.randint(4, vocabulary - 1, (count, words)).tolist()
    return [" ".join(map(str, row)) for row in ids]


def engine_of(model: TextModel) -> Engine:
    """Return the engine of a model."""

    def translate(texts: Sequence[str], beams: int) -> list[str]:
        return model.generate(texts, num_beams=beams, batch_tokens=_ALL_TOGETHER)

    return translate


def exported_engines(model: TextModel, folder: Path) -> dict[str, Engine]:
    """Return the engines of a model's network in ONNX Runtime; `folder` keeps their files."""
    # The exporter takes seconds to import, which other commands need not wait for.
    from talkconv.serving.check_export import shape_of
    from talkconv.serving.export_card import FLOAT32, INT8
    from talkconv.serving.exported_network import ExportedNetwork
    from talkconv.serving.quantize import write_int8
    from talkconv.serving.trace import write_graphs

    network: Any = model.network
    if not (folder / INT8).exists():
        write_graphs(network, folder / FLOAT32)
        write_int8(folder / FLOAT32, folder / INT8)
    shape, threads = shape_of(network), torch.get_num_threads()
    return {
        name: engine_of(replace(model, network=ExportedNetwork(folder / place, shape, threads)))
        for name, place in ((ONNX, FLOAT32), (ONNX_INT8, INT8))
    }


def transformer_engines(
    model: TextModel, length: Length, folder: Path
) -> tuple[dict[str, Engine], Any]:
    """Return engines of a Transformer of the model's size, and that network.

    Its weights are random, so `length` decides how many words it writes. It reads the same ids as
    the model.
    """
    marian = make_marian(model.network.config)
    found = {MARIAN: _on_texts(translate_with_marian(marian), model, length)}
    if importlib.util.find_spec("ctranslate2") is not None:
        for name, precision in CTRANSLATE2.items():
            translate = translate_with_ctranslate2(marian, folder, precision)
            found[name] = _on_texts(translate, model, length)
    return found, marian


def _on_texts(
    translate: Callable[[list[list[int]], int, int], list[list[int]]],
    model: TextModel,
    length: Length,
) -> Engine:
    def engine(texts: Sequence[str], beams: int) -> list[str]:
        sources = [list(model.tokenizer(text)["input_ids"]) for text in texts]
        found = translate(sources, beams, length(texts))
        return [" ".join(map(str, words)) for words in found]

    return engine
