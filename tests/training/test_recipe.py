import re
from dataclasses import fields

import pytest
import tomli_w
import torch

from talkconv.data.data_settings import DataSettings
from talkconv.models import (
    TaLKConvConfig,
    TaLKConvForCausalLM,
    TaLKConvForConditionalGeneration,
    preset,
)
from talkconv.network_presets import PRESETS
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.training.recipe import (
    MODEL_KEYS,
    make_recipe,
    read_recipe,
    read_toml,
    recipe_names,
    recipes_folder,
)
from talkconv.training.training_settings import TrainingSettings

PAPER = sorted(PRESETS)
SMALL = ["descriptions", "multi30k_de_en", "multi30k_en_de", "toy", "wikitext2"]
MINIMAL = {
    "task": "translation",
    "data": {"corpus": "pairs", "vocabulary": 100},
    "model": {"dim": 16, "heads": 2},
}


def changed(section, **values):
    return {**MINIMAL, section: {**MINIMAL.get(section, {}), **values}}


def test_the_recipes_are_those_of_the_paper_and_the_small_ones():
    assert recipe_names() == sorted([*PAPER, *SMALL])


@pytest.mark.parametrize("name", sorted([*PAPER, *SMALL]))
def test_every_recipe_builds_its_network(name):
    recipe = read_recipe(name)
    words = PRESETS.get(name, {}).get("vocab_size", 33_278)
    config = TaLKConvConfig(**recipe.model, vocab_size=words)
    language_model = recipe.task == "language_modelling"
    network = TaLKConvForCausalLM if language_model else TaLKConvForConditionalGeneration
    with torch.device("meta"):
        model = network(config)
    if name in PAPER:
        with torch.device("meta"):
            expected = network(preset(name))
        assert model.num_parameters() == expected.num_parameters()
        assert recipe.paper is not None
    else:
        assert model.num_parameters() < 25e6


@pytest.mark.parametrize("name", PAPER)
def test_the_paper_s_score_stands_in_the_recipe_s_heading_too(name):
    heading = (recipes_folder() / f"{name}.toml").read_text().split("task =")[0]
    paper = read_recipe(name).paper
    assert f"Table {paper.table} of the paper" in heading
    for score in (paper.score, *paper.also.values()):
        assert str(score) in heading


@pytest.mark.parametrize("name", ["iwslt14_de_en", "wikitext103", "cnn_dailymail_deep"])
@pytest.mark.parametrize("mixer", ["talk", "attention", "light", "dynamic"])
def test_one_override_takes_another_mixer(name, mixer):
    recipe = read_recipe(name, [f"model.mixer={mixer}"])
    network = recipe.network(vocab_size=267_744)
    assert network.encoder_mixer == mixer
    assert network.decoder_mixer == mixer


def test_the_toy_recipe_is_the_manual_of_all_settings():
    text = (recipes_folder() / "toy.toml").read_text()
    for section, kind in [
        ("data", DataSettings),
        ("training", TrainingSettings),
        ("generation", GenerationSettings),
    ]:
        body = re.search(rf"^\[{section}\]\n(.*?)(?=^\[|\Z)", text, flags=re.DOTALL | re.MULTILINE)
        for field in fields(kind):
            assert re.search(rf"^(# )?{field.name} = ", body.group(1), flags=re.MULTILINE), (
                field.name
            )
    body = re.search(r"^\[model\]\n(.*?)^\[", text, flags=re.DOTALL | re.MULTILINE).group(1)
    for name in {"preset", "mixer", *MODEL_KEYS} - {"encoder_mixer", "decoder_mixer"}:
        assert re.search(rf"^(# )?{name} = ", body, flags=re.MULTILINE), name


def test_overrides_are_typed_by_their_field():
    recipe = read_recipe(
        "toy",
        [
            "training.max_steps=500",
            "training.learning_rate=1",
            "training.betas=[0.5, 0.6]",
            "training.schedule=inverse_sqrt",
            "training.patience=none",
            # where None is another thing than leaving it out
            "data.max_length=none",
            "data.lowercase=true",
            "model.encoder_l_max=[2, 4]",
            "model.encoder_r_max=[2, 4]",
        ],
    )
    assert recipe.training.max_steps == 500
    assert recipe.training.learning_rate == 1.0
    assert recipe.training.betas == (0.5, 0.6)
    assert recipe.training.schedule == "inverse_sqrt"
    assert recipe.training.patience is None
    assert recipe.data.max_length is None
    assert recipe.data.lowercase is True
    assert recipe.model["encoder_l_max"] == [2, 4]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.maxsteps=3", "no setting is called training.maxsteps: did you mean 'max_steps'"),
        ("trainin.seed=3", "no section is called 'trainin': did you mean 'training'"),
        ("model.dims=3", "no setting is called model.dims: did you mean 'dim'"),
        (
            "model.vocab_size=3",
            "model.vocab_size must be left out: the prepared data determines it",
        ),
        ("data.vocabulary=many", "data.vocabulary must be a whole number or 'none', got 'many'"),
        ("training.seed", "must be section.key=value, like training.max_steps=1000; got"),
        ("seed=3", "must be section.key=value"),
        ("task.x=3", "task is not a section that has keys"),
        ("training.validate_by=accuracy", "must be one of 'loss', 'bleu', 'rouge', got"),
        ("model.mixer=attentoin", "must be of .*'attention'.*, got 'attentoin'"),
        ("model.heads=3", "heads must divide dim=128, got 3"),
    ],
)
def test_a_wrong_override_is_told_what_is_right(override, message):
    with pytest.raises(ValueError, match=message):
        read_recipe("toy", [override])


def test_a_missing_recipe_is_an_error_that_lists_the_known_ones(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="no recipe is called 'iwslt14': did you mean 'iwslt14_de"):
        read_recipe("iwslt14")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").touch()
    with pytest.raises(ValueError, match=r"no recipe is called 'own': did you mean own\.toml"):
        read_recipe("own")
    with pytest.raises(
        ValueError, match=r"mine.toml does not exist: give a recipe file, or one of"
    ):
        read_recipe(tmp_path / "mine.toml")


def test_a_file_that_is_no_toml_is_named_with_its_line(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("task = \n")
    with pytest.raises(ValueError, match=r"mine.toml must be TOML: .*line 1"):
        read_recipe(path)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({**MINIMAL, "train": {}}, "no section is called 'train'"),
        ({"task": "translation"}, "a recipe must have data, got task"),
        ({**MINIMAL, "task": "translating"}, "task must be one of translation"),
        ({**MINIMAL, "data": 3}, r"data must be a section, \[data\], got 3"),
        ({**MINIMAL, "data": {}}, "a recipe must have data.corpus"),
        (changed("model", encoder_l_max=[]), "needs an encoder: model.encoder_l_max must have"),
        ({**MINIMAL, "task": "language_modelling"}, "needs no encoder: .* must be empty"),
        (changed("model", preset="iwslt"), "no preset is called 'iwslt': did you mean"),
    ],
)
def test_what_is_no_recipe_is_refused(sections, message):
    with pytest.raises(ValueError, match=message):
        make_recipe("mine", sections)


def test_language_models_are_chosen_by_loss():
    with pytest.raises(ValueError, match="validate_by must be 'loss' for language_modelling"):
        read_recipe("wikitext2", ["training.validate_by=bleu"])


@pytest.mark.parametrize("name", sorted([*PAPER, *SMALL]))
def test_a_resolved_recipe_reads_back_as_itself(name, tmp_path):
    recipe = read_recipe(name, ["training.seed=7", "data.max_length=none"])
    path = tmp_path / "recipe.toml"
    path.write_text(tomli_w.dumps(recipe.sections()))
    assert make_recipe(name, read_toml(path)) == recipe
