"""Finds the network that a folder holds. It needs neither torch nor transformers."""

import json
from dataclasses import dataclass
from pathlib import Path

from talkconv.conventions import LANGUAGE_MODELLING, TRANSLATION
from talkconv.runs.card import CARD, RunCard

CONFIG = "config.json"


@dataclass(frozen=True)
class FoundNetwork:
    """The folder of a network, and the card of its run."""

    weights: Path
    card: RunCard


def find_network(folder: Path, model: str | None = None) -> FoundNetwork:
    """Find a network in a run that `talkconv train` wrote, or in the plain folder of a model.

    `model` is best, last, averaged or any folder in the run; by default it is the one that the
    run's card names.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} must be the folder of a run or of a model, but does not exist")
    if not (folder / CARD).exists():
        return FoundNetwork(folder, _card_of_model(folder))
    card = RunCard.read(folder)
    weights = folder / (model or card.model)
    if not (weights / CONFIG).exists():
        raise ValueError(f"{folder} has no model {weights.name!r}: {_models_of(folder)}")
    return FoundNetwork(weights, card)


def _card_of_model(folder: Path) -> RunCard:
    path = folder / CONFIG
    if not path.exists():
        raise ValueError(
            f"{folder} must be the folder of a run ({CARD}) or of a model ({CONFIG}): "
            "it has neither"
        )
    try:
        has_encoder = json.loads(path.read_text(encoding="utf-8")).get("is_encoder_decoder")
    except (AttributeError, ValueError) as error:
        raise ValueError(f"{path} must be the configuration of a model: {error}") from error
    # the defaults of a translation fit every network with an encoder
    return RunCard(task=TRANSLATION if has_encoder else LANGUAGE_MODELLING, recipe=folder.name)


def _models_of(folder: Path) -> str:
    found = sorted(path.parent.name for path in folder.glob(f"*/{CONFIG}"))
    if found:
        return f"it has {', '.join(found)}"
    return "it has none yet; `talkconv train` writes them"
