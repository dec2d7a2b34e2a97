"""Opens a run or an export for the server. An export needs no torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from talkconv.generation.text_model import TextModel
from talkconv.report.looks import DecoderLook, Layer, Look, Side, pieces_of, rounded
from talkconv.runs.find_network import find_network
from talkconv.search.network import Floats
from talkconv.serving.export_card import ExportCard, is_export
from talkconv.serving.exported_network import ExportedNetwork
from talkconv.serving.loading import load_export
from talkconv.serving.server.engine import Engine
from talkconv.serving.text_codec import TextCodec


def open_engine(folder: Path, model: str | None = None, threads: int | None = None) -> Engine:
    """Open a network of a run or an export, ready to answer."""
    if is_export(folder):
        opened = load_export(folder, model, threads)
        return Engine(opened, ExportCard.read(folder).run, ExportedWindows(opened))
    # a folder without a network is refused before torch and transformers are imported, which takes
    # seconds; exported networks do without them
    find_network(folder, model)
    from talkconv.runs.open_run import open_run
    from talkconv.serving.server.run_windows import windows_of_run

    run = open_run(folder, model, threads=threads)
    opened = TextModel(
        run.model, run.tokenizer, run.card.generation, run.card.task, run.target_tokenizer
    )
    return Engine(opened, run.card, windows_of_run(run))


class ExportedWindows:
    """Returns the windows of an exported network over a sentence and its output."""

    def __init__(self, model: TextModel) -> None:
        self._network: ExportedNetwork = _as(model.network, ExportedNetwork)
        self._codec: TextCodec = _as(model.tokenizer, TextCodec)
        self._target: TextCodec = _as(model.target_tokenizer or model.tokenizer, TextCodec)

    def __call__(self, text: str, source: list[int], target: list[int]) -> Look | DecoderLook:
        """Return the windows over the ids of a source and of its output, with its end."""
        config = self._network.config
        ids = np.array([source])
        if not config.is_encoder_decoder:
            # a language model reads its prompt and goes on
            read = [*source, *(token for token in target[:-1] if token != source[0])]
            return DecoderLook(text=text, encoder=None, decoder=self._decoder(read, None))
        encoded = self._network.encode(ids, np.ones_like(ids))
        layers = _layers(encoded.reach, config.encoder_l_max, config.encoder_r_max)
        encoder = Side(tokens=pieces_of(self._codec.pieces(source)), layers=layers)
        start = config.decoder_start_token_id
        assert start is not None, "an export of a translator has a start token"
        return Look(
            text=text, encoder=encoder, decoder=self._decoder([start, *target[:-1]], encoded)
        )

    def _decoder(self, read: list[int], encoded: Any) -> Side:
        l_max = self._network.config.decoder_l_max
        reach = self._network.begin(1, encoded).reach(np.array([read]))
        layers = _layers(reach, l_max, [0] * len(l_max))
        return Side(tokens=pieces_of(self._target.pieces(read)), layers=layers)


def _layers(reach: Floats, l_max: Sequence[int], r_max: Sequence[int]) -> list[Layer]:
    """Return the windows of each layer from reach (layers, 2, 1, T, H)."""
    return [
        Layer(l_max=left, r_max=right, left=rounded(both[0, 0].T), right=rounded(both[1, 0].T))
        for both, left, right in zip(reach, l_max, r_max, strict=True)
    ]


def _as(value: Any, kind: type[Any]) -> Any:
    assert isinstance(value, kind)
    return value
