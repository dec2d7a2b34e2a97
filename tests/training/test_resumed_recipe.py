"""Tests resumed runs with an edited recipe file and with other changes."""

import json
import shutil
from pathlib import Path

import pytest

from talkconv.training.origin import ORIGIN, Origin
from talkconv.training.recipe import read_toml
from talkconv.training.request import Request
from talkconv.training.resumed_recipe import RECIPE
from tests.training.cases import cli, go_on, run, write_recipe

SHORT = dict(max_steps=2, validate_every=2, save_every=2)


@pytest.fixture
def begun(request_for):
    """Return a run of two steps whose log_every was changed on the command line."""
    request = request_for(training=SHORT)
    first = Request(request.recipe, ["training.log_every=1"], request.data, request.out)
    run(first)
    return request


def edit(request, **sections):
    """Change some settings in the recipe file of a request."""
    write_recipe(
        Path(request.recipe), **{**sections, "training": {**SHORT, **sections.get("training", {})}}
    )


def test_a_change_of_the_file_counts(begun):
    edit(begun, training=dict(max_steps=4), generation=dict(num_beams=3))
    outcome = run(go_on(begun))
    assert outcome.step == 4
    assert outcome.recipe.generation.num_beams == 3
    # the earlier change of the command line stays, and need not be given again
    assert outcome.recipe.training.log_every == 1
    assert read_toml(begun.out / RECIPE)["training"]["max_steps"] == 4
    assert run(go_on(begun)).step == 4


def test_without_a_change_nothing_changes(begun):
    before = read_toml(begun.out / RECIPE)
    assert run(go_on(begun)).step == 2
    assert read_toml(begun.out / RECIPE) == before


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            dict(model=dict(dim=16)),
            r"was started with model.dim = 8, and .*translation.toml now has 16: "
            "give model.dim=8 on",
        ),
        (
            dict(training=dict(learning_rate=0.5)),
            "started with training.learning_rate = 0.01, and ",
        ),
        (
            dict(training=dict(log_every=5)),
            "now has training.log_every = 5, but this run took training.log_every from the "
            "command line",
        ),
    ],
)
def test_a_change_that_a_run_cannot_follow_is_refused_by_its_name(begun, sections, message):
    edit(begun, **sections)
    with pytest.raises(ValueError, match=message):
        run(go_on(begun))


def test_the_command_line_decides_against_the_file(begun):
    edit(begun, model=dict(dim=16), training=dict(max_steps=9, log_every=5))
    changes = ["model.dim=8", "training.max_steps=4", "training.log_every=2"]
    outcome = run(go_on(begun, *changes))
    assert outcome.step == 4
    assert outcome.recipe.training.log_every == 2
    # the run now knows the edited file, so it is not refused again
    assert run(go_on(begun)).step == 4


def test_a_changed_mixer_is_named_by_the_settings_that_it_sets(begun):
    edit(begun, model=dict(mixer="light"))
    with pytest.raises(ValueError, match=r"started with model.encoder_mixer = talk, and "):
        run(go_on(begun))


def test_a_run_of_an_older_version_asks_for_settings_that_differ(begun):
    (begun.out / ORIGIN).unlink()
    with pytest.raises(
        ValueError,
        match=r"differs from .*: training.log_every. .* of the run are: training.log_every=1$",
    ):
        run(go_on(begun))
    assert run(go_on(begun, "training.log_every=1", "training.max_steps=3")).step == 3
    assert Origin.read(begun.out).overrides == ["training.log_every=1", "training.max_steps=3"]
    assert run(go_on(begun)).step == 3


def test_a_run_of_an_older_version_goes_on_with_an_unchanged_recipe(request_for):
    request = request_for(training=SHORT)
    run(request)
    (request.out / ORIGIN).unlink()
    assert run(go_on(request, "training.max_steps=3")).step == 3


def test_a_broken_origin_is_named_with_the_cure(begun):
    (begun.out / ORIGIN).write_text("[]")
    with pytest.raises(ValueError, match=r"origin.json must say what .* Remove it, and the run"):
        run(go_on(begun))


def test_a_mixer_on_the_command_line_stands_for_both_stacks(begun):
    edit(begun, model=dict(mixer="light"))
    assert run(go_on(begun, "model.mixer=talk")).step == 2


def test_the_data_need_not_be_named_again(begun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    edit(begun, training=dict(max_steps=3))
    code, said = cli(begun.recipe, "--out", begun.out, "--resume")
    assert code == 0, said
    assert "from step 2 to 3" in said


def test_data_that_moved_is_asked_for(begun, tmp_path):
    card = json.loads((begun.out / "run.json").read_text())
    (begun.out / "run.json").write_text(json.dumps({**card, "data": str(tmp_path / "gone")}))
    again = Request(begun.recipe, out=begun.out, resume=True)
    with pytest.raises(
        ValueError, match=r"data of .* is no longer in its folder: .*gone .*give --data"
    ):
        run(again)
    moved = shutil.copytree(begun.data, tmp_path / "moved")
    assert run(Request(begun.recipe, data=moved, out=begun.out, resume=True)).step == 2
