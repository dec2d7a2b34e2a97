import itertools
from pathlib import Path

import pytest
import tomli_w

from talkconv.report.plan import Plan, Row, Table, Windows, read_plan
from talkconv.training.recipe import read_recipe, recipe_names

SHIPPED = Path(__file__).parents[2] / "results" / "plan.toml"
ROWS = [{"name": "talk", "label": "TaLK", "seeds": [1, 3]}, {"name": "x", "label": "X"}]
TABLE = {"name": "t", "title": "T", "recipe": "toy", "score": "BLEU, tokenized", "row": ROWS}


def written(tmp_path, **changes):
    path = tmp_path / "plan.toml"
    path.write_text(tomli_w.dumps({"title": "P", "table": [{**TABLE, **changes}]}))
    return path


def test_runs_are_named_after_recipe_row_and_seed(tmp_path):
    plan = read_plan(written(tmp_path, overrides=["training.max_steps=5"]))
    runs = {run.name: run for run in plan.runs()}
    assert list(runs) == ["toy-talk", "toy-talk-seed3", "toy-x"]
    assert runs["toy-talk-seed3"].overrides == ["training.max_steps=5", "training.seed=3"]
    assert plan.table_of("toy-x").name == "t"


def test_the_baseline_is_the_first_seed_of_its_row(tmp_path):
    table = read_plan(written(tmp_path, baseline="talk")).tables[0]
    *ours, other = table.runs()
    assert table.baseline_of(other).name == "toy-talk"
    assert [table.baseline_of(run) for run in ours] == [None, None]
    assert read_plan(written(tmp_path)).tables[0].baseline_of(other) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(baseline="tolk"), "baseline must be one of"),
        (dict(splits=[]), "at least one split"),
        (dict(spilts=["test"]), "no setting is called table.spilts: did you mean 'splits'"),
        (dict(row=[{"name": "talk"}]), "a plan must have row.label"),
        (dict(average="ten"), "table.average must be a whole number, got 'ten'"),
        (dict(row=[ROWS[1], ROWS[1]]), "a name of its own, got 'toy-x' twice"),
    ],
)
def test_mistakes_are_named(tmp_path, changes, message):
    path = written(tmp_path, **changes)
    with pytest.raises(ValueError, match=message) as error:
        read_plan(path)
    assert str(error.value).startswith(str(path))


def test_windows_are_of_planned_runs():
    table = Table("t", "T", "toy", "score", [Row("talk", "TaLK")])
    plan = {"title": "P", "tables": [table]}
    with pytest.raises(ValueError, match="did you mean 'toy-talk'"):
        Plan(**plan, windows=[Windows("toy-tolk", "w")])


def test_the_shipped_plan_has_recipes_that_can_be_trained():
    plan = read_plan(SHIPPED)
    assert len(plan.tables) == 7
    for run in plan.runs():
        if run.recipe in recipe_names():
            read_recipe(run.recipe, run.overrides)


def test_rows_of_the_ablation_add_one_feature_each():
    plan = read_plan(SHIPPED)
    (table,) = (table for table in plan.tables if table.name == "ablation")
    first_seeds = [table.runs_of(row)[0] for row in table.rows]
    recipes = [read_recipe(run.recipe, run.overrides) for run in first_seeds]
    changed = [
        {key for key in {**a.model, **b.model} if a.model.get(key) != b.model.get(key)}
        for a, b in itertools.pairwise(recipes)
    ]
    assert changed == [
        {"normalize"},
        {"encoder_l_max", "encoder_r_max", "decoder_l_max"},
        {"offset_dropout"},
        {"heads"},
        {"heads"},
        {"activation"},
        {"activation", "gate"},
    ]
