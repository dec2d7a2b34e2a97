"""Reads checkpoints of the authors' networks, which fairseq wrote, and executes nothing in them.

A checkpoint is a pickle, and a pickle can run any program when it is read. It is read with torch's
weights-only unpickler, which can only build tensors and plain containers.
"""

import argparse
import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from talkconv.models.configuration import TaLKConvConfig

_CURE = (
    "If you trust the file, open it once where it was trained and save only what is needed: "
    'torch.save({"args": checkpoint["args"], "model": checkpoint["model"]}, "plain.pt")'
)


class CheckpointError(ValueError):
    """A file is not a checkpoint of the authors' networks. The message says what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """The two parts that make a network: the settings it was trained with, and its parameters."""

    path: Path
    args: dict[str, Any]
    weights: dict[str, Tensor]

    @property
    def is_seq2seq(self) -> bool:
        return any(name.startswith("encoder.") for name in self.weights)


class _Ignored:
    """Replaces a class of the training toolkit whose content is not needed for a network."""

    def __init__(self, *args: Any) -> None:
        pass


# classes of progress meters and numbers, which training saves with the weights
_IGNORED = [
    *(f"fairseq.meters.{name}" for name in ("AverageMeter", "TimeMeter", "StopwatchMeter")),
    *(f"fairseq.logging.meters.{name}" for name in ("AverageMeter", "TimeMeter", "StopwatchMeter")),
    *(f"numpy.{core}.multiarray.scalar" for core in ("core", "_core")),
    "numpy.dtype",
]


def read_checkpoint(path: Path) -> Checkpoint:
    """Read the settings and the parameters, in float32, of a fairseq checkpoint."""
    if not path.is_file():
        raise CheckpointError(f"{path} is not a file")
    content = _load(path)
    if not isinstance(content, dict) or not {"args", "model"} <= content.keys():
        found = sorted(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise CheckpointError(
            f'{path} must be a fairseq checkpoint with "args" and "model", got {found}. '
            "A state dict alone lacks the windows and heads: convert the original file"
        )
    args, weights = content["args"], content["model"]
    if not isinstance(args, argparse.Namespace):
        raise CheckpointError(f'"args" in {path} must be a Namespace, got {type(args).__name__}')
    if not isinstance(weights, dict) or not weights:
        raise CheckpointError(f'"model" in {path} must be a state dict')
    strange = [name for name, value in weights.items() if not isinstance(value, Tensor)]
    if strange:
        raise CheckpointError(f'"model" in {path} must hold tensors only, not {strange[0]!r}')
    return Checkpoint(path, vars(args), {name: value.float() for name, value in weights.items()})


def _load(path: Path) -> Any:
    allowed = [argparse.Namespace, *((_Ignored, name) for name in _IGNORED)]
    try:
        with torch.serialization.safe_globals(allowed):  # type: ignore[arg-type]
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        foreign = re.search(r"GLOBAL ([\w.]+)|reduce for unrecognized function (\S+)", str(error))
        if foreign:
            name = foreign.group(1) or foreign.group(2)
            raise CheckpointError(
                f"{path} would run {name} when it is read, which is not needed for a network. "
                f"It was not run, and nothing was read. {_CURE}"
            ) from None
        raise _unreadable(path, error) from error
    # a broken pickle can raise any exception
    except Exception as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]
    return CheckpointError(
        f"{path} is not a checkpoint, or it is cut short ({path.stat().st_size} bytes): {reason}. "
        "Download it again and compare its size or checksum with the original's"
    )


def config_of(checkpoint: Checkpoint) -> TaLKConvConfig:
    """Translate the settings of a checkpoint into a config."""
    try:
        common = _seq2seq(checkpoint) if checkpoint.is_seq2seq else _language_model(checkpoint)
        return TaLKConvConfig(**common, **_decoder(checkpoint.args))
    except KeyError as error:
        raise CheckpointError(
            f"{checkpoint.path} must be a checkpoint of the authors' TaLK networks: "
            f"its args have no {error.args[0]!r} (arch {checkpoint.args.get('arch')!r})"
        ) from None
    except ValueError as error:
        raise CheckpointError(
            f"no network can be made from the settings in {checkpoint.path}: {error}"
        ) from error


def _decoder(args: dict[str, Any]) -> dict[str, Any]:
    dim = args["decoder_embed_dim"]
    _must_be("decoder_conv_dim", args, dim)
    _must_be("decoder_learned_pos", args, False)
    _must_be("no_token_positional_embeddings", args, False)
    for name in ("decoder_input_dim", "decoder_output_dim"):
        _must_be(name, args, dim)
    return dict(
        dim=dim,
        ff_dim=args["decoder_ffn_embed_dim"],
        heads=args["decoder_attention_heads"],
        decoder_l_max=_windows("decoder", args),
        gate=args["decoder_glu"],
        norm_first=args["decoder_normalize_before"],
        dropout=args["dropout"],
        attention_dropout=args["attention_dropout"],
        ff_dropout=args["relu_dropout"],
        input_dropout=args["input_dropout"],
        offset_dropout=args["weight_dropout"],
    )


def _seq2seq(checkpoint: Checkpoint) -> dict[str, Any]:
    args, weights = checkpoint.args, checkpoint.weights
    pairs = ("embed_dim", "ffn_embed_dim", "attention_heads", "glu", "normalize_before", "conv_dim")
    for name in pairs:
        _must_be(f"encoder_{name}", args, args[f"decoder_{name}"])
    _must_be("encoder_learned_pos", args, False)
    _must_be("adaptive_softmax_cutoff", args, None)
    shared = args["share_all_embeddings"]
    return dict(
        vocab_size=len(_weight(checkpoint, "decoder.embed_tokens.weight")),
        encoder_vocab_size=len(_weight(checkpoint, "encoder.embed_tokens.weight")),
        encoder_l_max=_windows("encoder", args),
        share_embeddings=shared,
        tie_word_embeddings=shared or args["share_decoder_input_output_embed"],
        final_norm="decoder.layer_norm.weight" in weights,
        label_smoothing=args.get("label_smoothing", 0.0),
    )


def _language_model(checkpoint: Checkpoint) -> dict[str, Any]:
    args, weights = checkpoint.args, checkpoint.weights
    common = dict(encoder_l_max=[], final_norm="decoder.layer_norm.weight" in weights)
    if not args["adaptive_input"]:
        return dict(
            **common,
            vocab_size=len(_weight(checkpoint, "decoder.embed_tokens.weight")),
            tie_word_embeddings=args["share_decoder_input_output_embed"],
        )
    for name in ("adaptive_softmax_cutoff", "adaptive_softmax_factor"):
        _must_be(name, args, args[name.replace("softmax", "input")])
    _must_be("tie_adaptive_weights", args, True)
    _must_be("tie_adaptive_proj", args, True)
    cutoffs = [int(cutoff) for cutoff in args["adaptive_input_cutoff"].split(",")]
    bands = (f"decoder.embed_tokens.embeddings.{band}.0.weight" for band in range(len(cutoffs) + 1))
    return dict(
        **common,
        vocab_size=sum(len(_weight(checkpoint, band)) for band in bands),
        adaptive_cutoffs=cutoffs,
        adaptive_factor=int(args["adaptive_input_factor"]),
        adaptive_dropout=args["adaptive_softmax_dropout"],
    )


def _windows(side: str, args: dict[str, Any]) -> list[int]:
    """Return the windows, one entry for each layer. A single entry stands for every layer."""
    windows, layers = list(args[f"{side}_kernel_size_list"]), args[f"{side}_layers"]
    windows = windows * layers if len(windows) == 1 else windows
    if len(windows) != layers:
        raise ValueError(f"{side}_kernel_size_list has {len(windows)} entries for {layers} layers")
    return windows


def _must_be(name: str, args: dict[str, Any], expected: Any) -> None:
    if args[name] != expected:
        raise ValueError(f"{name} must be {expected!r} to be converted, got {args[name]!r}")


def _weight(checkpoint: Checkpoint, name: str) -> Tensor:
    if name not in checkpoint.weights:
        raise CheckpointError(
            f"{checkpoint.path} has no parameter {name!r}: it must be a checkpoint of the authors' "
            "TaLK networks"
        )
    return checkpoint.weights[name]
