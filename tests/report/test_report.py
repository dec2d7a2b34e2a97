import json
import shutil

import pytest
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.report import report as module
from tests.report.cases import read_plan


def command(*words):
    return CliRunner().invoke(app, ["report", *map(str, words)])


def test_the_command_collects_runs_and_writes_the_page(workplace, tmp_path):
    answer = command(workplace / "runs", "--out", tmp_path, "--plan", workplace / "plan.toml")
    assert answer.exit_code == 0, answer.output
    assert "README.md: collected runs: tiny-talk, tiny-attention" in answer.stdout
    assert (tmp_path / "runs" / "tiny-talk" / "windows.json").is_file()
    assert not (tmp_path / "runs" / "tiny-attention" / "windows.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gone"], "gone must be a folder with runs in it"),
        ([], "plan.toml"),
    ],
)
def test_mistakes_are_one_message(tmp_path, words, message):
    answer = command(*words, "--out", tmp_path)
    assert answer.exit_code == 1
    assert message in answer.stderr
    assert "Traceback" not in answer.output


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
