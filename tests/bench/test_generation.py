import json

import pytest
import torch
from typer.testing import CliRunner

from talkconv.bench.decoding_steps import language_model_steps
from talkconv.bench.generation import SETTINGS
from talkconv.bench.marian import make_marian
from talkconv.cli import app


def test_a_language_models_steps_repeat_and_talk_keeps_its_size():
    early, few = language_model_steps(40, dim=32, ff_dim=32)
    late, many = language_model_steps(300, dim=32, ff_dim=32)
    assert few["talk"] == many["talk"]
    assert many["attention"] == 300 * 2 * 32 * 4 * 6
    for run in (*early.values(), *late.values()):
        assert torch.equal(run(), run())


@pytest.mark.slow
def test_command_writes_its_results(tmp_path):
    pytest.importorskip("ctranslate2")
    out = tmp_path / "generate.json"
    arguments = ["--seconds", "0", "--few", "10", "--many", "50", "--out", str(out)]
    result = CliRunner().invoke(app, ["bench", "generate", *arguments])
    assert result.exit_code == 0, result.output
    results = json.loads(out.read_text())["results"]
    assert len(results["translation"]) == 5
    assert set(results["steps"]) == {"talk 10", "attention 10", "talk 50", "attention 50"}


@pytest.mark.slow
def test_every_translation_has_all_its_tokens():
    source = torch.randint(4, 9_000, (2, 25))
    assert make_marian().generate(source, **SETTINGS).shape == (2, 26)
