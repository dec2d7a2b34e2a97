"""The folder of a run: what may begin or go on there, and what stands in it before training."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w
from transformers.trainer_callback import TrainerState

from talkconv.data.prepared import Prepared
from talkconv.files import write_text
from talkconv.runs import checkpoints
from talkconv.runs.card import CARD, RunCard
from talkconv.training.recipe import MODEL_KEYS, Recipe, as_toml, make_recipe, override, read_toml
from talkconv.training.training_settings import CHANGEABLE

RECIPE = "recipe.toml"


@dataclass(frozen=True)
class Beginning:
    """Where a run begins: at the start, or at its last checkpoint."""

    recipe: Recipe
    checkpoint: Path | None = None
    state: TrainerState | None = None


def check_data(prepared: Prepared, recipe: Recipe) -> None:
    """Prepared data must be what the recipe is for."""
    folder = prepared.folder
    anew = f"prepare it anew: talkconv prepare {recipe.name} --raw DIR --out DIR"
    if prepared.task != recipe.task:
        raise ValueError(
            f"recipe {recipe.name} is for {recipe.task}, but {folder} was prepared for "
            f"{prepared.task}: give another --data, or {anew}"
        )
    was, now = ({"data": as_toml(asdict(each))} for each in (prepared.settings, recipe.data))
    for key, old, new in _differences(was, now):
        raise ValueError(
            f"{folder} was prepared with {key} = {old}, but the recipe has {new}: give another "
            f"--data, {key}={old}, or {anew}"
        )


def plan_run(
    out: Path, recipe: Recipe, overrides: Sequence[str], prepared: Prepared, *, resume: bool
) -> Beginning:
    """What to do in `out`, which this leaves untouched."""
    if not (out / CARD).exists():
        if out.exists() and (not out.is_dir() or _foreign(out)):
            raise ValueError(f"{out} holds something else than a run: choose another --out")
        check_data(prepared, recipe)
        return Beginning(recipe)
    card = RunCard.read(out)
    found = checkpoints.checkpoints_of(out)
    if not resume:
        where = f"at step {checkpoints.step_of(found[-1])}" if found else "without a checkpoint yet"
        raise ValueError(
            f"{out} already holds a run of recipe {card.recipe} ({where}): go on with --resume, or "
            "choose another --out"
        )
    recipe = _resumed_recipe(out, card, recipe, overrides)
    check_data(prepared, recipe)
    if card.fingerprint != prepared.fingerprint:
        raise ValueError(
            f"{out} was trained with another vocabulary than that of {prepared.folder}: give its "
            f"own data, --data {card.data}, or begin a new run in another --out"
        )
    if not found:
        return Beginning(recipe)
    state = _check_checkpoint(found[-1], recipe)
    return Beginning(recipe, found[-1], state)


def write_run(out: Path, beginning: Beginning, prepared: Prepared) -> None:
    """Everything that stands in a run before its first step."""
    recipe = beginning.recipe
    out.mkdir(parents=True, exist_ok=True)
    checkpoints.recover_run(out)
    card = card_of(recipe, prepared)
    sections = recipe.sections()
    if (out / CARD).exists() and read_toml(out / RECIPE)["generation"] == sections["generation"]:
        # `talkconv tune` may have found better ones than the recipe's
        card = replace(card, generation=RunCard.read(out).generation)
    write_text(out / RECIPE, tomli_w.dumps(sections))
    # the card comes last: a folder without it is no run yet
    card.write(out)


def card_of(recipe: Recipe, prepared: Prepared) -> RunCard:
    return RunCard(
        task=recipe.task,
        recipe=recipe.name,
        data=str(prepared.folder.resolve()),
        fingerprint=prepared.fingerprint,
        source_lang=recipe.data.source_lang,
        target_lang=recipe.data.target_lang,
        generation=recipe.generation.reading_at_most(recipe.data.max_source_tokens),
        paper=recipe.sections().get("paper"),
        metric=recipe.training.validate_by,
    )


def _resumed_recipe(out: Path, card: RunCard, asked: Recipe, overrides: Sequence[str]) -> Recipe:
    """The run's own recipe with the changes that a run may be given as it goes on."""
    if card.recipe != asked.name:
        raise ValueError(
            f"{out} holds a run of recipe {card.recipe}, not of {asked.name}: choose another --out"
        )
    try:
        sections = read_toml(out / RECIPE)
        before = make_recipe(card.recipe, sections)
    except (OSError, ValueError) as error:
        raise ValueError(f"{out / RECIPE} must be the recipe of this run: {error}") from error
    for change in overrides:
        override(sections, change)
    now = make_recipe(card.recipe, sections)
    for key, old, new in _differences(before.sections(), now.sections()):
        section, _, name = key.partition(".")
        if section != "generation" and not (section == "training" and name in CHANGEABLE):
            raise ValueError(
                f"{out} was begun with {key} = {old}, which cannot become {new} on the way: leave "
                "the change out, or begin a new run in another --out"
            )
    return now


def _check_checkpoint(checkpoint: Path, recipe: Recipe) -> TrainerState:
    """A checkpoint must be whole and of this network."""
    files = [checkpoints.STATE, checkpoints.POSITION, "config.json", "model.safetensors"]
    if not recipe.training.fsdp:
        files += ["optimizer.pt", "scheduler.pt"]
    for name in files:
        if not (checkpoint / name).is_file():
            raise ValueError(
                f"{checkpoint} has no {name}: remove the folder, and training goes on from the "
                "checkpoint before it"
            )
    saved = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    wanted = recipe.network(vocab_size=saved["vocab_size"])
    for key in MODEL_KEYS:
        if key in saved and saved[key] != getattr(wanted, key):
            raise ValueError(
                f"{checkpoint} is of another network, with {key} = {saved[key]} where this run has "
                f"{getattr(wanted, key)}: remove the folder, or train in another --out"
            )
    state: TrainerState = TrainerState.load_from_json(str(checkpoint / checkpoints.STATE))
    return state


def _foreign(out: Path) -> bool:
    """Whether a folder without a card holds anything but what a killed beginning leaves."""
    return any(path.name != RECIPE and not path.name.startswith(".") for path in out.iterdir())


def _differences(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """section.key, and its two values, wherever two recipes differ."""
    for section in before:
        old, new = before[section], after.get(section)
        if not isinstance(old, Mapping) or not isinstance(new, Mapping):
            if old != new:
                yield section, old, new
            continue
        for key in dict.fromkeys([*old, *new]):
            if old.get(key) != new.get(key):
                yield f"{section}.{key}", old.get(key), new.get(key)
