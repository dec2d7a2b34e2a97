"""int8: ONNX Runtime's dynamic quantization of an exported network."""

import logging
from pathlib import Path

from onnxruntime.quantization import QuantType, quantize_dynamic

from talkconv.serving.export_card import DECODER, ENCODER


def write_int8(source: Path, folder: Path) -> None:
    """Write the network in `source` with int8 weights: one scale for each output of a layer.

    Only products with weights are quantized. Weights use 7 of their 8 bits: processors without
    VNNI instructions add pairs of products in 16 bits, where 8 bits would overflow and change the
    results from machine to machine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # the function logs advice for convolutional networks
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        for name in (ENCODER, DECODER):
            if (source / name).exists():
                quantize_dynamic(
                    source / name,
                    folder / name,
                    op_types_to_quantize=["MatMul", "Gemm"],
                    per_channel=True,
                    reduce_range=True,
                    weight_type=QuantType.QInt8,
                )
    finally:
        root.setLevel(level)


def megabytes(folder: Path) -> float:
    """Return the size of the files of a network in MB."""
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6
