"""The recipe of a resumed run: the recipe of the run, with the changes that were made since.

Changes come from the recipe file, which may have been edited, and from the command line. Each of
them takes effect, or an error names it.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from talkconv.training.origin import Origin
from talkconv.training.processes import launch_id
from talkconv.training.recipe import (
    Recipe,
    RecipeFile,
    as_override,
    make_recipe,
    override,
    read_toml,
    toml_text,
)
from talkconv.training.training_settings import CHANGEABLE

RECIPE = "recipe.toml"
Sections = Mapping[str, Any]


def resumed_recipe(
    out: Path, file: RecipeFile, overrides: Sequence[str], origin: Origin | None
) -> tuple[Recipe, Origin]:
    """Return the recipe of a resumed run, and its new origin."""
    try:
        sections = read_toml(out / RECIPE)
        before = make_recipe(file.name, sections).sections()
    except (OSError, ValueError) as error:
        raise ValueError(f"{out / RECIPE} must be the recipe of this run: {error}") from error
    asked = _keys(overrides)
    if origin is None:
        _check_equal(out, before, file, overrides)
    else:
        for key, value in _changes_of_file(origin, file, asked):
            _check_changeable(out, key, before, value, f"{file.path} now has {toml_text(value)}")
            section, _, name = key.partition(".")
            sections[section][name] = value
    for change in overrides:
        override(sections, change)
    now = make_recipe(file.name, sections)
    for key, _, new in differences(before, now.sections()):
        _check_changeable(out, key, before, new, f"it cannot become {toml_text(new)} on the way")
    kept = () if origin is None else origin.overrides
    return now, Origin(file.sections, [*kept, *overrides], launch_id())


def differences(before: Sections, after: Sections) -> Iterator[tuple[str, Any, Any]]:
    """Yield section.key and its two values wherever two recipes differ."""
    for section in dict.fromkeys([*before, *after]):
        old, new = before.get(section), after.get(section)
        if not isinstance(old, Mapping) or not isinstance(new, Mapping):
            if old != new:
                yield section, old, new
            continue
        for key in dict.fromkeys([*old, *new]):
            if old.get(key) != new.get(key):
                yield f"{section}.{key}", old.get(key), new.get(key)


def _changes_of_file(
    origin: Origin, file: RecipeFile, asked: set[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the changes in the recipe file since the run was last started or resumed.

    Settings that the command line gives now are left out, because the command line decides.
    """
    overridden = _keys(origin.overrides) - asked
    for key, _, new in differences(origin.sections, file.sections):
        if key in overridden:
            raise ValueError(
                f"{file.path} now has {key} = {toml_text(new)}, but this run took {key} from the "
                f"command line before: decide which one to use, by {key}=VALUE on the command line"
            )
    then, now = (
        make_recipe(file.name, _with(sections, origin.overrides)).sections()
        for sections in (origin.sections, file.sections)
    )
    for key, _, new in differences(then, now):
        if key not in asked:
            yield key, new


def _keys(overrides: Sequence[str]) -> set[str]:
    """Return the settings that overrides set, each as section.key."""
    keys = {change.partition("=")[0].strip() for change in overrides}
    if "model.mixer" in keys:
        keys |= {"model.encoder_mixer", "model.decoder_mixer"}
    return keys


def _with(sections: Sections, overrides: Sequence[str]) -> Sections:
    changed = deepcopy(dict(sections))
    for change in overrides:
        override(changed, change)
    return changed


def _check_changeable(out: Path, key: str, before: Sections, new: Any, why: str) -> None:
    """Raise a ValueError if a setting differs which must not change when a run is resumed."""
    section, _, name = key.partition(".")
    if section in ("generation", "paper") or (section == "training" and name in CHANGEABLE):
        return
    value = before.get(section)
    old = value.get(name) if isinstance(value, Mapping) else value
    if old == new:
        return
    kept = toml_text(old)
    raise ValueError(
        f"{out} was started with {key} = {kept}, and {why}: give {key}={kept} on the command line "
        "to go on as before, or start a new run in another --out"
    )


def _check_equal(out: Path, before: Sections, file: RecipeFile, overrides: Sequence[str]) -> None:
    """Raise a ValueError if a run of an older version differs from its recipe file."""
    now, asked = file.recipe(overrides).sections(), _keys(overrides)
    found = {key: old for key, old, _ in differences(before, now) if key not in asked}
    if found:
        keep = " ".join(as_override(key, old) for key, old in found.items())
        raise ValueError(
            f"{out} was started by a version that did not save the changes of the command line, "
            f"and it differs from {file.path}: {', '.join(found)}. Give these settings on the "
            f"command line; the values of the run are: {keep}"
        )
