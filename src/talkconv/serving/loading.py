"""Opens an export as a TextModel. It needs onnxruntime, tokenizers and numpy, and no torch."""

from pathlib import Path

from talkconv.generation.text_model import TextModel
from talkconv.serving.export_card import (
    TARGET_TOKENIZER,
    TOKENIZER,
    ExportCard,
    network_folder,
)
from talkconv.serving.exported_network import ExportedNetwork
from talkconv.serving.text_codec import TextCodec


def load_export(folder: Path, model: str | None = None, threads: int | None = None) -> TextModel:
    """Open the network `model` of an export, float32 or int8; by default float32 if it is there.

    `threads` is the number of threads for each step; by default all cores work.
    """
    card = ExportCard.read(folder)
    network = ExportedNetwork(network_folder(folder, model), card.network, threads)
    codec, target = load_codecs(folder)
    return TextModel(network, codec, card.run.generation, card.run.task, target)


def load_codecs(folder: Path) -> tuple[TextCodec, TextCodec]:
    """Return the tokenizers of an export's sources and of its outputs."""
    codec = TextCodec(folder / TOKENIZER)
    has_target = (folder / TARGET_TOKENIZER).is_dir()
    return codec, TextCodec(folder / TARGET_TOKENIZER) if has_target else codec
