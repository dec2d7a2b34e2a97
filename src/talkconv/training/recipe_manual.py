"""Writes the manual of all settings of a recipe, from the classes that define them.

`make settings` writes two files of a clone: docs/settings.md, with a table for each section, and
recipes/toy.toml, a recipe that has every setting with its explanation and, where the recipe has
another value, its default.
"""

import ast
import inspect
import itertools
import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any, cast, get_type_hints

from talkconv.network_settings import NetworkSettings
from talkconv.training.recipe import (
    MODEL_KEYS,
    SECTIONS,
    ModelShortcuts,
    Recipe,
    as_toml,
    read_toml,
    recipes_folder,
)
from talkconv.training.training_settings import CHANGEABLE
from talkconv.training.typed import type_in_words

_PAGE = """\
# All settings of a recipe

<!-- `make settings` writes this page from the classes that define the settings. -->

A recipe is a TOML file with a task and the sections below; `task`, `[data]` with its `corpus`, and
`[model]` must be there. What a recipe leaves out has the default of these tables. On the command
line a setting is `section.key=value`, such as `training.max_steps=1000`. TOML has no word for an
absent value: write `"none"`. A name that is not in these tables is an error, which tells the
nearest one.

[recipes/toy.toml](../recipes/toy.toml) is a recipe with every setting and these explanations;
[train on your own text](train-your-own.md) tells which of them matter first.

`task` must be given. {task}
"""
_ABOUT = {
    "data": "How raw text becomes token ids. `talkconv prepare` uses it.",
    "model": "The network. The first two settings stand for several others.",
    "training": (
        "How the network is trained. A run that goes on with `--resume` can be given another "
        "{changeable}; whoever wants to change another setting begins a new run."
    ),
    "generation": (
        "How a trained network writes: in validation by BLEU or ROUGE, and in `talkconv generate` "
        "and `talkconv evaluate`, whose options change it for one call. A finished run takes other "
        "values by `talkconv train RECIPE --resume`, and `talkconv tune` chooses the length "
        "penalty on the validation set."
    ),
    "paper": "What the paper reports of the network, for the tables of `talkconv evaluate`.",
}
_RECIPE = """\
# A recipe with every setting. `talkconv train toy` learns to translate simple German into English,
# in minutes on two cores; the sentences come from a grammar, so nothing needs to be downloaded.
# Copy this file, name your own (talkconv train mine.toml), or change single settings on the
# command line: talkconv train toy training.max_steps=500 model.mixer=attention
#
# The values suit this small corpus. Where a value is not the default, a remark behind it tells the
# default; a setting in a comment is left out. `make settings` writes the comments of this file.
"""
_WIDTH = 100


@dataclass(frozen=True)
class Setting:
    """A setting of a recipe: its type in words, its default as TOML writes it, its explanation.

    The default is None if a recipe must have the setting.
    """

    name: str
    type: str
    default: str | None
    explanation: str


def all_settings() -> dict[str, list[Setting]]:
    """Return the settings of each section of a recipe, in the order of their definition."""
    network = [each for each in settings_of(NetworkSettings) if each.name in MODEL_KEYS]
    sections = {section: settings_of(kind) for section, kind in SECTIONS.items()}
    model = [*settings_of(ModelShortcuts), *network]
    return {"data": sections.pop("data"), "model": model, **sections}


def settings_of(kind: type) -> list[Setting]:
    """Return the settings that a dataclass defines.

    >>> from talkconv.training.training_settings import TrainingSettings
    >>> settings_of(TrainingSettings)[1].default
    '4000'
    """
    types, comments = get_type_hints(kind), _comments(kind)
    return [
        Setting(
            each.name, type_in_words(types[each.name]), _default(each), comments.get(each.name, "")
        )
        for each in fields(cast("Any", kind))
    ]


def settings_page() -> str:
    """Return the text of docs/settings.md."""
    changeable = ", ".join(f"`{name}`" for name in sorted(CHANGEABLE))
    parts = [_PAGE.format(task=_comments(Recipe)["task"])]
    for section, settings in all_settings().items():
        about = _ABOUT[section].format(changeable=changeable)
        parts += [f"## [{section}]\n", textwrap.fill(about, _WIDTH, break_on_hyphens=False) + "\n"]
        parts.append("\n".join(_table(settings)) + "\n")
    return "\n".join(parts)


def annotated_recipe(sections: Mapping[str, Any]) -> str:
    """Return a recipe file with every setting and its explanation.

    `sections` are those of the recipe file. A setting that they lack is written as a comment.
    """
    lines = [_RECIPE, *_comment(_comments(Recipe)["task"]), f"task = {_written(sections['task'])}"]
    for section, settings in all_settings().items():
        given = sections.get(section)
        if given is None:
            continue
        lines += ["", f"[{section}]"]
        for each in settings:
            lines += [*_comment(each.explanation), assignment(each, given)]
    return "\n".join(lines) + "\n"


def manual(clone: Path) -> dict[Path, str]:
    """Return the two files of the manual in a clone, with what they must contain."""
    toy = clone / "recipes" / "toy.toml"
    return {
        clone / "docs" / "settings.md": settings_page(),
        toy: annotated_recipe(read_toml(toy)),
    }


def _comments(kind: type) -> dict[str, str]:
    """Return the comment above each field of a class, in one line."""
    source = textwrap.dedent(inspect.getsource(kind))
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    lines = source.splitlines()
    comments = {}
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            before = (line.strip() for line in reversed(lines[: node.lineno - 1]))
            above = [*itertools.takewhile(lambda line: line.startswith("#"), before)]
            comments[node.target.id] = " ".join(line.strip("# ") for line in reversed(above))
    return comments


def _default(field: "Field[Any]") -> str | None:
    if field.default_factory is not MISSING:
        return _written(field.default_factory())
    return None if field.default is MISSING else _written(field.default)


def _written(value: Any) -> str:
    """Return a value as a recipe has it.

    >>> _written((0.9, 1e-07)), _written(None)
    ('[0.9, 1e-7]', '"none"')
    """
    value = as_toml(value)
    if isinstance(value, list):
        return f"[{', '.join(_written(each) for each in value)}]"
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("e-0", "e-") if isinstance(value, float) else text


def _table(settings: list[Setting]) -> Iterator[str]:
    yield "| setting | default | type | what it does |"
    yield "|---|---|---|---|"
    for each in settings:
        default = "must be given" if each.default is None else f"`{each.default}`"
        explanation = each.explanation.replace("|", "\\|")
        # the quotation marks of TOML
        kind = each.type.replace("'", '"')
        yield f"| `{each.name}` | {default} | {kind} | {explanation} |"


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def assignment(setting: Setting, given: Mapping[str, Any]) -> str:
    """Return the line of a recipe that sets a setting to the value that `given` has for it.

    >>> width = Setting("dim", "a whole number", "512", "The channels of each token.")
    >>> assignment(width, {"dim": 128}), assignment(width, {})
    ('dim = 128  # default: 512', '# dim = 512')
    """
    if setting.name not in given:
        return f"# {setting.name} = {setting.default}"
    line = f"{setting.name} = {_written(given[setting.name])}"
    if setting.default is None or line == f"{setting.name} = {setting.default}":
        return line
    return f"{line}  # default: {setting.default}"


if __name__ == "__main__":
    for path, text in manual(recipes_folder().parent).items():
        path.write_text(text, encoding="utf-8")
