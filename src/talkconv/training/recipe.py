"""Recipes: TOML files read into typed settings, with overrides from the command line."""

import json
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast, get_type_hints

import talkconv
from talkconv.conventions import LANGUAGE_MODELLING, check_task
from talkconv.data.data_settings import DataSettings
from talkconv.messages import did_you_mean
from talkconv.network_presets import preset_settings
from talkconv.network_settings import NetworkSettings
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.training.training_settings import TrainingSettings
from talkconv.training.typed import NONE, settings_from, typed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# these two come from the prepared data
_NOT_IN_RECIPES = {"vocab_size", "encoder_vocab_size"}
# A recipe is checked before its vocabulary is known. This size is large enough for any cutoffs.
_LARGE_VOCABULARY = 10_000_000
# the keys of [model] that are settings of a network, with their types
MODEL_KEYS = {
    name: kind
    for name, kind in get_type_hints(NetworkSettings).items()
    if name not in _NOT_IN_RECIPES
}


@dataclass(frozen=True)
class PaperScore:
    """The [paper] section: the score that the paper reports for this network."""

    # The number of the paper's table.
    table: int
    # The name of the score, such as "bleu".
    metric: str
    # The score that the paper reports.
    score: float
    # The other scores of the same row, by their names.
    also: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelShortcuts:
    """Keys of [model] that stand for several settings of a network."""

    # The name of one of the paper's networks: its settings are taken, and those that the recipe
    # gives beside it change them.
    preset: str | None = None
    # The mixer of both stacks: "talk", "attention", "light" or "dynamic". It sets encoder_mixer and
    # decoder_mixer, which have values of their own if it is "none".
    mixer: str | Sequence[str] | None = None


SHORTCUTS = get_type_hints(ModelShortcuts)


@dataclass(frozen=True)
class Recipe:
    """All settings of a run, from one TOML file.

    >>> recipe = read_recipe("iwslt14_de_en", ["model.mixer=dynamic", "training.max_steps=10"])
    >>> recipe.training.max_steps, recipe.model["encoder_mixer"]
    (10, 'dynamic')
    """

    name: str
    # The task is "translation", "summarization" or "language_modelling".
    task: str
    data: DataSettings
    # all fields of NetworkSettings except the vocabulary
    model: dict[str, Any]
    training: TrainingSettings
    generation: GenerationSettings
    paper: PaperScore | None = None

    def __post_init__(self) -> None:
        check_task(self.task)
        # Raise an error for sizes that do not fit each other when the recipe is read.
        network = self.network(_LARGE_VOCABULARY)
        if not network.has_decoder:
            raise ValueError(
                "model.decoder_l_max must have one entry for each layer, got an empty list"
            )
        if network.has_encoder == (self.task == LANGUAGE_MODELLING):
            needs = "no encoder" if network.has_encoder else "an encoder"
            raise ValueError(
                f"task {self.task!r} needs {needs}: model.encoder_l_max must "
                f"{'be empty' if network.has_encoder else 'have one entry for each layer'}, "
                f"got {list(network.encoder_l_max)}"
            )
        by = self.training.validate_by
        if by != "loss" and self.task == LANGUAGE_MODELLING:
            raise ValueError(f"training.validate_by must be 'loss' for {self.task}, got {by!r}")

    def network(self, vocab_size: int) -> NetworkSettings:
        """Return the settings of the network for a vocabulary of this size."""
        return NetworkSettings(**self.model, vocab_size=vocab_size)

    def sections(self) -> dict[str, Any]:
        """Return the sections of a recipe file, with all defaults filled in."""
        sections: dict[str, Any] = {
            "task": self.task,
            "data": asdict(self.data),
            "model": self.model,
            "training": asdict(self.training),
            "generation": asdict(self.generation),
        }
        if self.paper is not None:
            sections["paper"] = asdict(self.paper)
        return cast("dict[str, Any]", as_toml(sections))


SECTIONS: dict[str, type] = {
    "data": DataSettings,
    "training": TrainingSettings,
    "generation": GenerationSettings,
    "paper": PaperScore,
}


def recipes_folder() -> Path:
    """Return the folder of the recipes, in the installed package or at the root of a clone."""
    package = Path(talkconv.__file__).parent
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parents[1] / "recipes"


def recipe_names() -> list[str]:
    return sorted(path.stem for path in recipes_folder().glob("*.toml"))


@dataclass(frozen=True)
class RecipeFile:
    """A recipe file as it was read."""

    path: Path
    sections: dict[str, Any]

    @property
    def name(self) -> str:
        return self.path.stem

    def recipe(self, overrides: Sequence[str] = ()) -> Recipe:
        """Return the recipe with `section.key=value` changes."""
        sections = deepcopy(self.sections)
        for change in overrides:
            override(sections, change)
        try:
            return make_recipe(self.name, sections)
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from error


def read_recipe_file(name_or_path: str | Path) -> RecipeFile:
    """Read the file of a shipped recipe by its name, or any recipe file by its path."""
    path = _find(str(name_or_path))
    return RecipeFile(path, read_toml(path))


def read_recipe(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a shipped recipe by its name, or any recipe by its path.

    Each override is a change `section.key=value`.

    >>> read_recipe("toy", ["training.max_steps=500"]).training.max_steps
    500
    """
    return read_recipe_file(name_or_path).recipe(overrides)


def read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            sections: dict[str, Any] = tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} must be TOML: {error}") from error
    return sections


def make_recipe(name: str, sections: Mapping[str, Any]) -> Recipe:
    """Make a recipe from the sections of its file."""
    known = ["task", "model", *SECTIONS]
    for section, values in sections.items():
        if section not in known:
            raise ValueError(f"no section is called {section!r}: {did_you_mean(section, known)}")
        if section != "task" and not isinstance(values, Mapping):
            raise ValueError(f"{section} must be a section, [{section}], got {values!r}")
    for section in ("task", "data", "model"):
        if section not in sections:
            raise ValueError(
                f"a recipe must have {section}, got {', '.join(sections) or 'nothing'}"
            )
    paper = sections.get("paper")
    return Recipe(
        name=name,
        task=typed(sections["task"], str, "task"),
        data=settings_from(DataSettings, "data", sections["data"]),
        model=_model(sections["model"]),
        training=settings_from(TrainingSettings, "training", sections.get("training", {})),
        generation=settings_from(GenerationSettings, "generation", sections.get("generation", {})),
        paper=None if paper is None else settings_from(PaperScore, "paper", paper),
    )


def _find(name_or_path: str) -> Path:
    path = Path(name_or_path)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ValueError(
                f"{path} does not exist: give a recipe file, or one of {recipe_names()}"
            )
        return path
    shipped = recipes_folder() / f"{name_or_path}.toml"
    if not shipped.is_file():
        own = f"{name_or_path}.toml"
        is_file = Path(own).is_file()
        hint = f"did you mean {own}?" if is_file else did_you_mean(name_or_path, recipe_names())
        raise ValueError(
            f"no recipe is called {name_or_path!r}: {hint}\n"
            "A recipe of your own is given by its path, which ends in .toml."
        )
    return shipped


def _model(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of the network that a [model] section describes.

    The settings of `preset` come first, and the other keys change them. `mixer` sets the mixers of
    both stacks, and a key after it can change them again.
    """
    known = {**SHORTCUTS, **MODEL_KEYS}
    ground: dict[str, Any] = {}
    changes: dict[str, Any] = {}
    for key, given in values.items():
        if key in _NOT_IN_RECIPES:
            raise ValueError(f"model.{key} must be left out: the prepared data determines it")
        if key not in known:
            hint = did_you_mean(key, known, "[model] has")
            raise ValueError(f"no setting is called model.{key}: {hint}")
        value = typed(given, known[key], f"model.{key}")
        if key not in SHORTCUTS:
            changes[key] = value
        elif value is None:
            continue
        elif key == "preset":
            ground = preset_settings(value)
        else:
            changes |= {"encoder_mixer": value, "decoder_mixer": value}
    settings = {**ground, **changes}
    return _resolved({key: settings[key] for key in settings if key not in _NOT_IN_RECIPES})


def _resolved(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of a network, with defaults for those that are not given."""
    network = NetworkSettings(**model, vocab_size=_LARGE_VOCABULARY)
    return {key: getattr(network, key) for key in MODEL_KEYS}


def override(sections: dict[str, Any], change: str) -> None:
    """Write one `section.key=value` of the command line into the sections of a file."""
    place, equals, text = change.partition("=")
    section, dot, key = place.strip().partition(".")
    if not (equals and dot and key):
        raise ValueError(
            f"an override must be section.key=value, like training.max_steps=1000; got {change!r}"
        )
    values = sections.setdefault(section, {})
    if not isinstance(values, dict):
        raise ValueError(f"{section} is not a section that has keys, got {change!r}")
    try:
        values[key] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        values[key] = text.strip()


def as_override(key: str, value: Any) -> str:
    """Return a change in the form of the command line.

    >>> as_override("training.betas", (0.9, 0.98)), as_override("training.patience", None)
    ('training.betas=[0.9, 0.98]', 'training.patience=none')
    """
    return f"{key}={toml_text(value)}"


def toml_text(value: Any) -> str:
    """Return a value in the syntax of TOML. A plain word needs no quotes on a command line.

    >>> toml_text(True), toml_text([1, 2]), toml_text("bleu"), toml_text("1e3")
    ('true', '[1, 2]', 'bleu', '"1e3"')
    """
    value = as_toml(value)
    if isinstance(value, str) and value.isidentifier():
        return value
    return json.dumps(value, ensure_ascii=False)


def as_toml(value: Any) -> Any:
    """Convert tables and values to types that TOML can write."""
    if isinstance(value, Mapping):
        return {key: as_toml(each) for key, each in value.items()}
    if value is None:
        return NONE
    return list(value) if isinstance(value, tuple) else value
