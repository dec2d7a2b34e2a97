"""Writes the graphs of a network as ONNX files."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from onnx_ir.passes.common import ClearMetadataAndDocStringPass

from talkconv.serving.export_card import DECODER, ENCODER
from talkconv.serving.graphs import DecoderGraph, EncoderGraph, traceable


def write_graphs(network: Any, folder: Path) -> None:
    """Write decoder.onnx and, unless the network is a language model, encoder.onnx."""
    folder.mkdir(parents=True, exist_ok=True)
    twin = traceable(network)
    _write(DecoderGraph(twin), folder / DECODER)
    if network.config.is_encoder_decoder:
        _write(EncoderGraph(twin), folder / ENCODER)


def _write(graph: DecoderGraph | EncoderGraph, path: Path) -> None:
    inputs, sizes = graph.example()
    input_names, output_names = graph.names()
    with torch.no_grad(), _quiet():
        program = torch.onnx.export(
            graph,
            inputs,
            dynamo=True,
            dynamic_shapes=sizes,
            input_names=input_names,
            output_names=output_names,
            verbose=False,
        )
    assert program is not None
    # the exporter notes which line of which file of this machine each node comes from
    ClearMetadataAndDocStringPass()(program.model)
    program.save(str(path))


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the exporter's messages about torchvision and deprecated classes."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
