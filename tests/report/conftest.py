import pytest

from talkconv.report import page
from talkconv.report.report import report
from tests.report.cases import prepare, read_plan, train, write_plan


@pytest.fixture(scope="session")
def workplace(tmp_path_factory):
    """Return a folder with a plan, its data, one finished run and one that was stopped."""
    root = tmp_path_factory.mktemp("report")
    path = write_plan(root)
    prepare(root)
    plan = read_plan(path)
    train(root, plan, "tiny-talk")
    train(root, plan, "tiny-attention", max_steps=6, evaluate=False)
    # its max_steps is larger than the steps that were done
    recipe = root / "runs" / "tiny-attention" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("max_steps = 6", "max_steps = 12"))
    return root


@pytest.fixture(scope="session")
def reported(workplace, tmp_path_factory):
    """Return the results of that folder, which tests must not change."""
    results = tmp_path_factory.mktemp("results")
    report(read_plan(workplace / "plan.toml"), [workplace / "runs"], results)
    return results


@pytest.fixture
def no_pictures(monkeypatch):
    """Let pages be written without their pictures, which take seconds to draw."""
    for name in ("draw_curves", "draw_reach", "draw_sentence", "draw_talk"):
        monkeypatch.setattr(page, name, lambda *_: True)
