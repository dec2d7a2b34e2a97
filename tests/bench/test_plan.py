from dataclasses import replace

import pytest
from typer.testing import CliRunner

from talkconv.bench import plan
from talkconv.bench.data_sheets import GPUS, Sheet
from talkconv.bench.plan import fits, gpu_hours, page
from talkconv.bench.training_cost import Cost, batch_of, cost_of
from talkconv.cli import app
from talkconv.training.recipe import read_recipe

GIB = 1 << 30
COST = Cost(
    recipe="mine",
    parameters=100_000_000,
    forward=200e6,
    backward=400e6,
    activations=1e6,
    batch=4000,
    tokens=1e9,
    optimizer_values=2,
    is_half=True,
    seconds=1e-3,
)


def test_memory_and_hours_worked_out_by_hand():
    # weights and gradients in float32 and a half copy: 10 bytes; Adam: 8
    assert COST.weights == 1_000_000_000
    assert COST.optimizer == 800_000_000
    assert COST.memory == 1_000_000_000 + 800_000_000 + 4_000_000_000
    # 600e6 operations x 1e9 tokens at 30 % of 1e15 a second: 2 000 s
    sheet = Sheet("one", 6_000_000_000, 1e12, 1e15, "nowhere")
    assert gpu_hours(COST, sheet, 1) == pytest.approx(2000 / 3600)
    assert gpu_hours(COST, sheet, 8) == pytest.approx(2000 / 8 / 0.9 / 3600)
    assert fits(COST, sheet)
    assert not fits(COST, replace(sheet, memory=5_000_000_000))


def test_a_small_recipe_is_counted():
    recipe = read_recipe("toy", ["training.accumulation=3"])
    cost = cost_of(recipe, tokens=60, steps=1)
    settings = recipe.training
    assert cost.tokens == settings.tokens * 3 * settings.max_steps
    # a product has two operations a weight; the backward has two products for each
    assert 1.0 < cost.forward / cost.parameters < 4.0
    assert cost.backward == pytest.approx(2 * cost.forward, rel=0.15)
    assert cost.activations > 100 * recipe.model["dim"]
    assert cost.seconds > 0
    assert not cost.is_half


def test_operations_and_activations_grow_with_the_tokens():
    recipe = read_recipe("toy")
    small, large = (cost_of(recipe, tokens=tokens, steps=1) for tokens in (60, 240))
    assert small.forward == pytest.approx(large.forward, rel=0.05)
    assert small.activations == pytest.approx(large.activations, rel=0.1)


@pytest.mark.parametrize("name", ["toy", "descriptions", "wikitext2"])
def test_batches_fit_the_task(name):
    recipe = read_recipe(name)
    batch, longest = batch_of(recipe, 100)
    assert batch["input_ids"].shape[0] == batch["labels"].shape[0]
    assert longest == max(batch["input_ids"].shape[1], batch["labels"].shape[1])


def test_the_page_marks_its_numbers_as_estimates_and_names_sources():
    text = page([COST, replace(COST, recipe="large", parameters=10**11)])
    assert "**Everything on this page is an\nestimate.**" in text
    assert all(sheet.source in text for sheet in GPUS)
    assert "at 30% of the half-precision peak" in text
    # 100 billion parameters fit nowhere
    assert "| `large` | – | – | – | – | – |" in text


def test_the_command_plans_one_recipe(monkeypatch):
    monkeypatch.setattr(plan, "cost_of", lambda recipe: replace(COST, recipe=recipe.name))
    result = CliRunner().invoke(app, ["plan", "iwslt14_de_en", "training.tokens=2000"])
    assert result.exit_code == 0, result.output
    assert "iwslt14_de_en: estimates" in result.output
    assert "RTX 2080 Ti" in result.output


def test_the_command_says_what_it_needs():
    result = CliRunner().invoke(app, ["plan"])
    assert result.exit_code == 1
    assert "name a recipe, or give --out FILE" in result.output
    assert "did you mean 'toy'" in CliRunner().invoke(app, ["plan", "toi"]).output
