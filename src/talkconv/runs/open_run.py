"""Opens a run folder: its card, one of its networks, and the tokenizer."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase
from transformers.utils import logging

from talkconv.data.tokenizer import load_tokenizer
from talkconv.models import TaLKConvForCausalLM, TaLKConvForConditionalGeneration
from talkconv.models.generative import TaLKConvGenerativeModel
from talkconv.runs.card import RunCard
from talkconv.runs.convert import TARGET_TOKENIZER
from talkconv.runs.find_network import find_network
from talkconv.threads import use_threads


@dataclass(frozen=True)
class Run:
    """A network that is ready to generate, with its tokenizers and its card."""

    model: TaLKConvGenerativeModel
    tokenizer: PreTrainedTokenizerBase
    # for the network's outputs; it differs from `tokenizer` only in converted networks
    target_tokenizer: PreTrainedTokenizerBase
    card: RunCard
    folder: Path
    # the folder of the network itself: `folder`, or one of the folders in it
    weights: Path


def open_run(
    folder: Path,
    model: str | None = None,
    device: torch.device | str | None = None,
    threads: int | None = None,
) -> Run:
    """Open a run that `talkconv train` wrote, or a plain folder of a model and its tokenizer.

    `model` is best, last, averaged or any folder in the run. None means the one that the card
    names. The model is in evaluation mode, on `device` or on the best device of this machine.
    If `threads` is given, torch uses so many threads from now on.
    """
    use_threads(threads)
    found = find_network(folder, model)
    weights = found.weights
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    network = _load_model(weights).to(device)  # type: ignore[arg-type]
    tokenizer = load_tokenizer_of(weights)
    target = weights / TARGET_TOKENIZER
    target_tokenizer = load_tokenizer_of(target) if target.exists() else tokenizer
    return Run(network.eval(), tokenizer, target_tokenizer, found.card, folder, weights)


def load_tokenizer_of(folder: Path) -> PreTrainedTokenizerBase:
    """Load our tokenizer of raw text, or the tokenizer of transformers that the folder names."""
    try:
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ValueError(f"{folder} must have a tokenizer beside the model: {error}") from error
    if config.get("tokenizer_class") == "TaLKConvTokenizer":
        return load_tokenizer(folder)
    theirs: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
    return theirs


def _load_model(folder: Path) -> TaLKConvGenerativeModel:
    config = AutoConfig.from_pretrained(folder)
    if config.model_type != "talkconv":
        raise ValueError(f"{folder} must hold a talkconv model, got {config.model_type!r}")
    kind: Any = (
        TaLKConvForConditionalGeneration if config.is_encoder_decoder else TaLKConvForCausalLM
    )
    with _no_progress_bar():
        model: TaLKConvGenerativeModel = kind.from_pretrained(folder)
    return model


@contextlib.contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Hide transformers' progress bar, because loading is quick and stderr is for errors."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
