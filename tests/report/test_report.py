import json
import shutil

import pytest

from talkconv.report import report as module
from tests.report.cases import read_plan


@pytest.fixture
def no_page(monkeypatch):
    monkeypatch.setattr(module, "write_page", lambda plan, results: results)


def test_windows_are_measured_once_for_the_same_weights(workplace, tmp_path, monkeypatch, no_page):
    plan = read_plan(workplace / "plan.toml")
    measured = []
    real = module.measure_windows

    def count(run, sentences):
        measured.append(run.name)
        return real(run, sentences, most=2)

    monkeypatch.setattr(module, "measure_windows", count)
    for _ in range(2):
        module.report(plan, [workplace / "runs"], tmp_path)
    assert measured == ["tiny-talk"]
    path = tmp_path / "runs" / "tiny-talk" / "windows.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "weights": "others"}))
    module.report(plan, [workplace / "runs"], tmp_path)
    assert measured == ["tiny-talk"] * 2


def test_speed_is_measured_for_the_first_seed_of_finished_rows(
    workplace, tmp_path, monkeypatch, no_page
):
    measured = []
    monkeypatch.setattr(module, "write_speed", lambda run: measured.append(run.name))
    plan = read_plan(workplace / "plan.toml")
    module.report(plan, [workplace / "runs"], tmp_path, speed=True)
    assert measured == ["tiny-talk"]


def test_the_first_folder_that_has_a_run_counts(workplace, tmp_path):
    plan = read_plan(workplace / "plan.toml")
    shutil.copytree(workplace / "runs" / "tiny-talk", tmp_path / "tiny-talk")
    found = module.find_runs(plan, [tmp_path, workplace / "runs"])
    assert found["tiny-talk"] == tmp_path / "tiny-talk"
    assert found["tiny-attention"] == workplace / "runs" / "tiny-attention"
