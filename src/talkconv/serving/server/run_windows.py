"""The windows of a run's network, in PyTorch, for the page of the server."""

from typing import Any

import torch

from talkconv.layers.talk_conv import TaLKConv
from talkconv.report.looks import DecoderLook, Look, Side, pieces_of
from talkconv.report.windows import recorded, windows_of
from talkconv.runs.open_run import Run
from talkconv.serving.server.engine import Windows


def windows_of_run(run: Run) -> Windows | None:
    """Return the function that looks at the windows of a run's network.

    Returns None if the network has other mixers than TaLK, which have no windows.
    """
    mixers = [block.mixer_unit.mixer for stack in _stacks(run.model) for block in stack.layers]
    if not all(isinstance(mixer, TaLKConv) for mixer in mixers):
        return None

    def look(text: str, source: list[int], target: list[int]) -> Look | DecoderLook:
        model: Any = run.model
        if not model.config.is_encoder_decoder:
            read = [*source, *(token for token in target[:-1] if token != source[0])]
            with torch.inference_mode(), recorded(model.decoder) as found:
                model(torch.tensor([read]))
            return DecoderLook(text=text, encoder=None, decoder=_side(run.tokenizer, read, found))
        encoder, decoder = windows_of(model, source, target)
        start = [model.config.decoder_start_token_id, *target[:-1]]
        return Look(
            text=text,
            encoder=_side(run.tokenizer, source, encoder),
            decoder=_side(run.target_tokenizer, start, decoder),
        )

    return look


def _side(tokenizer: Any, ids: list[int], layers: Any) -> Side:
    pieces = pieces_of([str(piece) for piece in tokenizer.convert_ids_to_tokens(ids)])
    return Side(tokens=pieces, layers=layers)


def _stacks(model: Any) -> list[Any]:
    both = model.config.is_encoder_decoder
    return [model.encoder, model.decoder] if both else [model.decoder]
