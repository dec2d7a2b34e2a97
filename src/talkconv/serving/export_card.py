"""The card of an export, `export.json`, and the files beside it. Reading it needs no torch.

FOLDER/
  export.json              this card
  README.md                the model card, for people
  tokenizer/               tokenizer.json and tokenizer_config.json, as transformers writes them
  target_tokenizer/        the same for the outputs, where they have a vocabulary of their own
  float32/ int8/           a network each: encoder.onnx (not of a language model), decoder.onnx
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from talkconv.conventions import LANGUAGE_MODELLING
from talkconv.files import write_json
from talkconv.runs.card import RunCard

CARD = "export.json"
FORMAT = 1
TOKENIZER, TARGET_TOKENIZER = "tokenizer", "target_tokenizer"
ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
FLOAT32, INT8 = "float32", "int8"
PRECISIONS = (FLOAT32, INT8)


@dataclass(frozen=True)
class NetworkShape:
    """The sizes and special tokens of a network, under the names that TaLKConvConfig gives them."""

    vocab_size: int
    # the words of the source; the same as vocab_size where both sides share a vocabulary
    source_vocab_size: int
    dim: int
    heads: int
    decoder_l_max: list[int]
    # the widest windows of the encoder's layers; empty for a language model
    encoder_l_max: list[int]
    encoder_r_max: list[int]
    # how many weights the network has
    parameters: int = 0
    pad_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    # the token that every output begins with; a language model needs none
    decoder_start_token_id: int | None = None

    @property
    def is_encoder_decoder(self) -> bool:
        """Return whether the network has an encoder, and so translates or summarizes."""
        return bool(self.encoder_l_max)


@dataclass(frozen=True)
class ExportCard:
    """The facts about an export that the runtime needs."""

    # the card of the run that was exported
    run: RunCard
    network: NetworkShape
    # the version of talkconv that wrote the export
    version: str
    # the checks and their results, for people to read
    checks: dict[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(
                f"this version reads exports of format {FORMAT}, got {self.format}: "
                "export the run again, or use the version of talkconv that wrote it"
            )
        if self.network.is_encoder_decoder == (self.run.task == LANGUAGE_MODELLING):
            raise ValueError(f"a network for {self.run.task} must fit its layers, got others")

    def write(self, folder: Path) -> None:
        """Write the card into the folder of an export."""
        write_json(folder / CARD, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> "ExportCard":
        """Read the card of an export."""
        path = folder / CARD
        try:
            return cls.of(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError as error:
            raise ValueError(
                f"{folder} has no {CARD}: give a folder that `talkconv export` wrote"
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} must be the card of an export: {error}") from error

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "ExportCard":
        """Make a card from the values of its JSON object, whose names must be known."""
        unknown = sorted(set(values) - {each.name for each in fields(cls)})
        if unknown:
            raise ValueError(f"it must not have a key {unknown[0]!r}")
        known = dict(values, run=RunCard.of(values["run"]))
        return cls(**{**known, "network": NetworkShape(**values["network"])})


def is_export(folder: Path) -> bool:
    """Return whether `talkconv export` wrote the folder."""
    return (folder / CARD).is_file()


def networks_of(folder: Path) -> list[str]:
    """Return the names of the networks that an export holds: float32, int8 or both."""
    return [name for name in PRECISIONS if (folder / name / DECODER).is_file()]


def network_folder(folder: Path, name: str | None = None) -> Path:
    """Return the folder of one network of an export; the first one unless `name` chooses."""
    found = networks_of(folder)
    if not found or (name is not None and name not in found):
        has = f"it has {', '.join(found)}" if found else "it has none"
        raise ValueError(f"{folder} has no network {name or FLOAT32!r}: {has}")
    return folder / (name or found[0])


def fastest_network(folder: Path) -> str | None:
    """Return int8 if an export has it. Otherwise return None, which means the default network."""
    return INT8 if INT8 in networks_of(folder) else None
