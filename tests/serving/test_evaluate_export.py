import json

import numpy as np
import pytest
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.evaluation.evaluate_run import evaluate_run
from talkconv.serving.evaluate_export import losses_of, open_export, perplexity_of_export
from tests.serving.test_loading import without_torch

EXPORT = dict(open_folder=open_export, perplexity_of=perplexity_of_export)


def scores_of(report):
    return {score.name: (round(score.value, 3), score.signature) for score in report.scores}


def test_a_translator_scores_as_its_run(translation):
    ours = evaluate_run(translation.folder, "valid", data=translation.data, **EXPORT)
    theirs = evaluate_run(translation.run, "valid")
    assert scores_of(ours) == scores_of(theirs)
    assert ours.about["parameters"] == theirs.about["parameters"]
    assert ours.about["model"] == "float32"


@pytest.mark.parametrize("streaming", [False, True])
def test_a_language_model_has_the_perplexity_of_its_run(language_model, streaming):
    options = dict(split="valid", streaming=streaming)
    ours = evaluate_run(language_model.folder, data=language_model.data, **options, **EXPORT)
    theirs = evaluate_run(language_model.run, **options)
    assert scores_of(ours) == scores_of(theirs)


def test_the_sum_of_losses_is_worked_out_by_hand():
    logits = np.log(np.array([[[1.0, 3.0], [1.0, 1.0]]], dtype=np.float32))
    found = losses_of(logits, np.array([[1, 0]]))
    assert found == pytest.approx(-np.log(3 / 4) - np.log(1 / 2))


def test_the_command_scores_int8_by_its_name(translation):
    words = ["evaluate", str(translation.folder), "--split", "valid", "--model", "int8"]
    words += ["--data", str(translation.data)]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    report = json.loads((translation.folder / "evaluation" / "valid.json").read_text())
    assert report["about"]["model"] == "int8"


@pytest.mark.parametrize("kind", ["translation", "language_model"])
def test_the_command_needs_no_torch(exported, kind):
    place = exported(kind)
    words = ["talkconv", "evaluate", place.folder, "--split", "test", "--data", place.data]
    code = f"""
sys.argv = {[str(word) for word in words]}
from talkconv.__main__ import main
try:
    main()
except SystemExit as error:
    assert not error.code, error
print("torch" in sys.modules)
"""
    found = without_torch(code)
    assert found.rstrip().endswith("False")
    assert ("perplexity per token" if kind == "language_model" else "sacreBLEU") in found
