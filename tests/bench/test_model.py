import json

import pytest
import torch
from typer.testing import CliRunner

from talkconv.bench import changing_shapes
from talkconv.bench.measure import Timing
from talkconv.bench.model import verdict
from talkconv.bench.networks import encode_document, training_step
from talkconv.cli import app


def timings(**seconds):
    return {name: Timing(value, value, value, 1) for name, value in seconds.items()}


def test_verdict_names_the_next_fastest():
    results = {
        128: timings(talk=1.0, attention=3.0, light=1.5, dynamic=2.0),
        8192: timings(talk=1.25, attention=9.0, light=5.0, dynamic=1.25),
    }
    assert verdict(results).splitlines() == [
        "n = 128: 1.50 times as fast as the next (LightConv)",
        "n = 8,192: 1.00 times as fast as the next (DynamicConv) (quartiles overlap)",
        "tokens per second at 8,192: 0.80 of those at 128",
    ]


def test_steps_train():
    step = training_step("talk", tokens=16, length=8)
    losses = [step() for _ in range(4)]
    assert losses[-1] < losses[0]


def test_documents_are_encoded_by_the_mixer_that_was_asked_for():
    found = {mixer: encode_document(mixer, 40)() for mixer in ("talk", "attention")}
    assert found["talk"].shape == found["attention"].shape == (1, 40, 512)
    assert not torch.allclose(found["talk"], found["attention"])


def test_every_length_must_divide_the_tokens():
    result = CliRunner().invoke(app, ["bench", "model", "--n", "3", "--tokens", "8"])
    assert result.exit_code == 2
    assert "must divide 8" in result.output


def test_shapes_change_from_batch_to_batch_within_the_budget():
    batches = list(changing_shapes.batches(20, 200))
    shapes = {(source.shape, target.shape) for source, target in batches}
    assert len(shapes) > 15
    for source, target in batches:
        assert source.shape[0] == target.shape[0]
        assert max(source.numel(), target.numel()) <= 200


def test_the_bar_compares_with_the_mixer_that_takes_least():
    peaks = dict(talk=1000, attention=1100, light=1001, dynamic=1200)
    bar = changing_shapes.bar_of(peaks)
    assert bar.verdict == "met"
    assert "LightConv" in bar.what
    assert changing_shapes.bar_of({**peaks, "talk": 1020}).verdict == "not met"
    assert changing_shapes.bar_of(dict.fromkeys(peaks)) is None


@pytest.mark.slow
def test_command_writes_its_results(tmp_path):
    out = tmp_path / "model.json"
    arguments = ["--n", "8", "--tokens", "16", "--rounds", "2", "--steps", "1", "--out", str(out)]
    result = CliRunner().invoke(app, ["bench", "model", *arguments])
    assert result.exit_code == 0, result.output
    results = json.loads(out.read_text())["results"]
    (row,) = results["training"]
    assert row["n"] == 8
    mixers = {"talk", "attention", "light", "dynamic"}
    assert set(row["timings"]) == set(results["changing shapes"]) == mixers
