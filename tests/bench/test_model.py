import json

import pytest
from typer.testing import CliRunner

from talkconv.bench.measure import Timing
from talkconv.bench.model import training_step, verdict
from talkconv.cli import app


def timings(**seconds):
    return {name: Timing(value, value, value, 1) for name, value in seconds.items()}


def test_verdict_names_the_next_fastest():
    results = {
        128: timings(talk=1.0, attention=3.0, light=1.5, dynamic=2.0),
        8192: timings(talk=1.25, attention=9.0, light=5.0, dynamic=2.5),
    }
    assert verdict(results).splitlines() == [
        "n = 128: 1.50 times as fast as the next (light)",
        "n = 8,192: 2.00 times as fast as the next (dynamic)",
        "tokens per second at 8,192: 0.80 of those at 128",
    ]


def test_steps_train():
    step = training_step("talk", tokens=16, length=8)
    losses = [step() for _ in range(4)]
    assert losses[-1] < losses[0]


def test_every_length_must_divide_the_tokens():
    result = CliRunner().invoke(app, ["bench", "model", "--n", "3", "--tokens", "8"])
    assert result.exit_code == 2
    assert "must divide 8" in result.output


@pytest.mark.slow
def test_command_writes_its_results(tmp_path):
    out = tmp_path / "model.json"
    arguments = ["--n", "8", "--tokens", "16", "--seconds", "0", "--out", str(out)]
    result = CliRunner().invoke(app, ["bench", "model", *arguments])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(out.read_text())["results"]
    assert row["n"] == 8
    assert set(row["timings"]) == {"talk", "attention", "light", "dynamic"}
