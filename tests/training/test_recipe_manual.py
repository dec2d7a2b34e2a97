"""The manual of all settings says what the code says."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from talkconv.training.recipe import MODEL_KEYS, make_recipe, read_recipe
from talkconv.training.recipe_manual import all_settings, annotated_recipe, manual, settings_of

ROOT = Path(__file__).parents[2]
# a sentence or two, which a reader of the table understands alone
SENTENCES = re.compile(r"[A-Z].*[.]")


@pytest.mark.parametrize("name", ["docs/settings.md", "recipes/toy.toml"])
def test_the_files_say_what_the_code_says(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == manual(ROOT)[ROOT / name], "run `make settings`"


def test_every_setting_is_explained():
    for section, settings in all_settings().items():
        for each in settings:
            assert SENTENCES.fullmatch(each.explanation), f"{section}.{each.name}"


def test_no_setting_is_left_out():
    """Each setting of a resolved recipe is in the manual, and nothing else but two shortcuts."""
    found = {name: {each.name for each in each_of} for name, each_of in all_settings().items()}
    expected = {
        section: set(values)
        for section, values in read_recipe("iwslt14_de_en").sections().items()
        if section != "task"
    }
    assert found == {**expected, "model": {*MODEL_KEYS, "preset", "mixer"}}


def test_the_defaults_are_those_of_a_recipe_that_gives_none(tmp_path):
    """A recipe that has all defaults of the manual is the same as one that leaves them out."""
    least = {"task": "translation", "data": {"corpus": "toy"}, "model": {}}
    lines = ['task = "translation"']
    for section, settings in all_settings().items():
        if section == "paper":
            continue
        lines += [f"[{section}]", *(f"{each.name} = {each.default}" for each in settings)]
    text = "\n".join(lines).replace("corpus = None", 'corpus = "toy"')
    (tmp_path / "mine.toml").write_text(text)
    assert read_recipe(tmp_path / "mine.toml") == make_recipe("mine", least)


def test_a_recipe_tells_where_it_differs():
    text = annotated_recipe(
        {
            "task": "translation",
            "data": {"corpus": "toy", "vocabulary": 900},
            "model": {"mixer": "talk", "dim": 512},
        }
    )
    lines = text.splitlines()
    assert 'corpus = "toy"' in lines
    assert 'vocabulary = 900  # default: "none"' in lines
    assert "dim = 512" in lines
    assert "# heads = 8" in lines
    assert '# encoder_mixer = "talk"' in lines
    assert not any(line.startswith("[training]") for line in lines)


@dataclass
class Example:
    """Fields with a comment of one line, of two, and of none."""

    # One line.
    one: float = 1e-7

    # Two
    # lines.
    two: tuple[int, int] = (1, 2)
    none: str | None = None


def test_comments_and_defaults_are_read_from_a_class():
    one, two, none = settings_of(Example)
    assert (one.explanation, one.default, one.type) == ("One line.", "1e-7", "a number")
    assert (two.explanation, two.default) == ("Two lines.", "[1, 2]")
    assert (none.explanation, none.default, none.type) == ("", '"none"', "a text or 'none'")
