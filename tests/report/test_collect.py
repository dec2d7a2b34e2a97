import json

import pytest

from talkconv.evaluation.score_report import outputs_path
from talkconv.report.collect import collect, is_run, summary_of
from talkconv.report.kept_run import read_kept
from talkconv.report.outcome import Outcome, write_outcome
from tests.report.cases import SCORE


def test_what_is_kept_is_small_and_reads_back(workplace, tmp_path):
    run = workplace / "runs" / "tiny-talk"
    collect(run, tmp_path / "tiny-talk")
    found = read_kept(tmp_path / "tiny-talk")
    assert found.finished
    assert found.score("test", SCORE)["interval"] is not None
    assert [point.tokens for point in found.curve()] == sorted(p.tokens for p in found.curve())
    assert found.recipe["training"]["max_steps"] == 12
    outputs = outputs_path(run, "test").read_text()
    assert outputs_path(tmp_path / "tiny-talk", "test").read_text() == outputs != ""
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 50_000
    assert not list(tmp_path.rglob("*.safetensors"))


def test_no_path_of_the_machine_is_kept(workplace, tmp_path):
    run = workplace / "runs" / "tiny-talk"
    path = run / "evaluation" / "test.json"
    content = json.loads(path.read_text())
    content["about"]["machine"]["command"] = (
        f"talkconv evaluate {run} --baseline {run.parent}/tiny-x/evaluation/test.hypotheses"
    )
    path.write_text(json.dumps(content))
    collect(run, tmp_path / "tiny-talk")
    about = read_kept(tmp_path / "tiny-talk").evaluations["test"]["about"]
    assert about["machine"]["command"] == (
        "talkconv evaluate runs/tiny-talk --baseline tiny-x/evaluation/test.hypotheses"
    )
    assert (about["run"], about["data"]) == ("runs/tiny-talk", "data/tiny")
    texts = [each.read_text() for each in tmp_path.rglob("*") if each.is_file()]
    assert not any(str(workplace) in text for text in texts)


def test_an_unfinished_run_says_how_far_it_is(workplace):
    summary = summary_of(workplace / "runs" / "tiny-attention")
    assert (summary["step"], summary["max_steps"], summary["finished"]) == (6, 12, False)
    assert summary["tokens_per_epoch"] == 200


def test_how_a_run_failed_is_kept(workplace, tmp_path):
    run = workplace / "runs" / "tiny-attention"
    write_outcome(run, Outcome({"processor": "P"}, "diverges"))
    collect(run, tmp_path / "kept")
    (run / "outcome.json").unlink()
    assert read_kept(tmp_path / "kept").status == "diverges"


@pytest.mark.parametrize("files", [[], ["run.json"], ["recipe.toml"]])
def test_a_run_has_a_card_and_a_recipe(tmp_path, files):
    for name in files:
        (tmp_path / name).write_text("")
    assert not is_run(tmp_path)
