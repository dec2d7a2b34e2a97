"""What a run folder is, and how to open it: its card, one of its models, and the tokenizer."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase
from transformers.utils import logging

from talkconv.data.folders import whole_file
from talkconv.data.settings import TASKS
from talkconv.data.tokenizer import load_tokenizer
from talkconv.evaluation.settings import GenerationSettings
from talkconv.models import TaLKConvForCausalLM, TaLKConvForConditionalGeneration
from talkconv.models.base import TaLKConvPreTrainedModel
from talkconv.models.convert import TARGET_TOKENIZER

CARD = "run.json"
FORMAT = 1


@dataclass(frozen=True)
class RunCard:
    """`run.json`: what generation and evaluation need to know of a run."""

    task: str
    # the recipe's name
    recipe: str
    # the prepared data, an absolute path, and the fingerprint of its vocabulary
    data: str | None = None
    fingerprint: str | None = None
    source_lang: str | None = None
    target_lang: str | None = None
    generation: GenerationSettings = field(default_factory=GenerationSettings)
    # what the paper reports: metric, score, table
    paper: dict[str, Any] | None = None
    # what chose the best checkpoint on the validation set
    metric: str | None = None
    # which of the run's models is meant where none is named: best, last, averaged
    model: str = "best"
    format: int = FORMAT

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"task must be one of {TASKS}, got {self.task!r}")
        if self.format != FORMAT:
            raise ValueError(
                f"this version reads run cards of format {FORMAT}, got {self.format}: "
                "use the version of talkconv that wrote it"
            )

    def write(self, folder: Path) -> None:
        """Replaces the card of `folder` at once: a reader sees the old one or the new one."""
        with whole_file(folder / CARD) as path:
            path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "RunCard":
        path = folder / CARD
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            return cls.of(values)
        except FileNotFoundError as error:
            raise ValueError(
                f"{folder} has no {CARD}: give a folder that `talkconv train` wrote"
            ) from error
        except (json.JSONDecodeError, TypeError, ValueError) as error:
            raise ValueError(f"{path} must be the card of a run: {error}") from error

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "RunCard":
        if not isinstance(values, Mapping) or not isinstance(values.get("generation"), Mapping):
            raise ValueError("it must be an object with a `generation` object in it")
        unknown = sorted(set(values) - {each.name for each in fields(cls)})
        if unknown:
            raise ValueError(f"it must not have a key {unknown[0]!r}")
        return cls(**{**values, "generation": GenerationSettings.of(values["generation"])})


@dataclass(frozen=True)
class Run:
    """A model that is ready to write, with all that belongs to it."""

    model: TaLKConvPreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    # of what the model writes; another than `tokenizer` only in converted networks
    target_tokenizer: PreTrainedTokenizerBase
    card: RunCard
    folder: Path
    # where the model itself stands: `folder`, or one of the models in it
    weights: Path


def open_run(
    folder: Path, model: str | None = None, device: torch.device | str | None = None
) -> Run:
    """Open a run that `talkconv train` wrote, or a plain folder of a model and its tokenizer.

    `model` is best, last, averaged or any folder in the run; None: the one that its card names.
    The model is in evaluation mode, on `device` or the best one here.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} must be the folder of a run or of a model, but is not there")
    if (folder / CARD).exists():
        card = RunCard.read(folder)
        weights = folder / (model or card.model)
        if not (weights / "config.json").exists():
            raise ValueError(f"{folder} has no model {weights.name!r}: {_models_of(folder)}")
    else:
        card, weights = _card_of_model(folder), folder
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    network = _load_model(weights).to(device)  # type: ignore[arg-type]
    tokenizer = load_tokenizer_of(weights)
    target = weights / TARGET_TOKENIZER
    target_tokenizer = load_tokenizer_of(target) if target.exists() else tokenizer
    return Run(network.eval(), tokenizer, target_tokenizer, card, folder, weights)


def load_tokenizer_of(folder: Path) -> PreTrainedTokenizerBase:
    """Our tokenizer of raw text, or any of transformers' where the folder says so."""
    try:
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ValueError(f"{folder} must have a tokenizer beside the model: {error}") from error
    if config.get("tokenizer_class") == "TaLKConvTokenizer":
        return load_tokenizer(folder)
    theirs: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
    return theirs


def _load_model(folder: Path) -> TaLKConvPreTrainedModel:
    config = AutoConfig.from_pretrained(folder)
    if config.model_type != "talkconv":
        raise ValueError(f"{folder} must hold a talkconv model, got {config.model_type!r}")
    kind: Any = (
        TaLKConvForConditionalGeneration if config.is_encoder_decoder else TaLKConvForCausalLM
    )
    with _no_progress_bar():
        model: TaLKConvPreTrainedModel = kind.from_pretrained(folder)
    return model


@contextlib.contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Weights load in a moment, and standard error is for what went wrong."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _card_of_model(folder: Path) -> RunCard:
    if not (folder / "config.json").exists():
        raise ValueError(
            f"{folder} must be the folder of a run ({CARD}) or of a model (config.json): "
            "it has neither"
        )
    config = AutoConfig.from_pretrained(folder)
    # sources say nothing of lengths: what a translation needs suits every encoder and decoder
    task = "translation" if config.is_encoder_decoder else "language_modelling"
    return RunCard(task=task, recipe=folder.name)


def _models_of(folder: Path) -> str:
    found = sorted(path.parent.name for path in folder.glob("*/config.json"))
    if found:
        return f"it has {', '.join(found)}"
    return "it has none yet; `talkconv train` writes them"
