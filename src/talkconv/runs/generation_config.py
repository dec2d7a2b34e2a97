"""Writes the settings of generation as `generation_config.json`, which transformers reads."""

import json
from pathlib import Path
from typing import Any

from transformers import GenerationConfig

from talkconv.files import write_json
from talkconv.runs.card import RunCard
from talkconv.runs.generation_settings import GenerationSettings

GENERATION_CONFIG = "generation_config.json"


def as_generation_config(settings: GenerationSettings) -> dict[str, Any]:
    """Return the settings under the names of transformers.

    transformers has no names for max_ratio, max_extra and stepwise_length_penalty. It keeps them as
    they are, and the generate() of our networks follows them.

    >>> as_generation_config(GenerationSettings(num_beams=4))["num_beams"]
    4
    """
    lengths = dict(
        max_new_tokens=settings.max_length,
        min_new_tokens=settings.min_length or None,
        no_repeat_ngram_size=settings.no_repeat_ngram or None,
        max_ratio=settings.max_ratio,
        max_extra=settings.max_extra,
    )
    if settings.temperature:
        samples = dict(temperature=settings.temperature, top_p=settings.top_p, top_k=settings.top_k)
        return dict(do_sample=True, num_beams=1, length_penalty=None, **samples, **lengths)
    several = settings.num_beams > 1
    # transformers refuses to save settings that have no effect
    return dict(
        do_sample=None,
        num_beams=settings.num_beams,
        length_penalty=settings.length_penalty if several else None,
        stepwise_length_penalty=settings.stepwise_length_penalty if several else 0.0,
        temperature=None,
        top_p=None,
        top_k=None,
        **lengths,
    )


def follow(model: Any, settings: GenerationSettings) -> None:
    """Let model.generate() follow the settings. They are also saved with the model."""
    model.generation_config = GenerationConfig(
        **_changed(model.generation_config.to_dict(), settings)
    )


def write_generation_config(network: Path, settings: GenerationSettings) -> None:
    """Replace the settings in the generation_config.json of a network's folder.

    The file is replaced and not changed in place, because other folders may link to it.
    """
    path = network / GENERATION_CONFIG
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    write_json(path, _changed(known, settings))


def write_generation_configs(run: Path) -> None:
    """Give all networks of a run the settings of generation that its card has."""
    settings = RunCard.read(run).generation
    for config in run.glob(f"*/{GENERATION_CONFIG}"):
        write_generation_config(config.parent, settings)


def _changed(known: dict[str, Any], settings: GenerationSettings) -> dict[str, Any]:
    """Return the values of a generation config with these settings, without unset ones.

    A private mark says that a config was made from the network's config. transformers ignores the
    names that are only ours if it finds that mark.
    """
    values = {**known, **as_generation_config(settings)}
    return {
        name: value
        for name, value in values.items()
        if value is not None and not name.startswith("_")
    }
