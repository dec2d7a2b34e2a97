import json
from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

from talkconv.bench import generation
from talkconv.bench.decoding_steps import language_model_steps
from talkconv.bench.engines import MARIAN, ONNX, OURS, engine_of
from talkconv.cli import app
from talkconv.evaluation.evaluate_run import writes_lowercase
from talkconv.models import TaLKConvConfig, TaLKConvForConditionalGeneration


def test_a_language_models_steps_repeat_and_talk_keeps_its_size():
    early, few = language_model_steps(40, dim=32, ff_dim=32)
    late, many = language_model_steps(300, dim=32, ff_dim=32)
    assert few["talk"] == many["talk"]
    assert many["attention"] == 300 * 2 * 32 * 4 * 6
    for run in (*early.values(), *late.values()):
        assert torch.equal(run(), run())


def test_engines_take_turns_and_every_text_is_answered():
    turns = []

    def engine(name):
        def translate(texts, beams):
            turns.append((name, list(texts), beams))
            return [f"{name} {text}" for text in texts]

        return translate

    outputs, seconds = generation.take_turns(
        {"a": engine("a"), "b": engine("b")}, [["x"], ["y", "z"]], beams=3
    )
    assert outputs == {"a": ["a x", "a y", "a z"], "b": ["b x", "b y", "b z"]}
    assert {name: len(taken) for name, taken in seconds.items()} == {"a": 2, "b": 2}
    # both warm up, then take turns on each batch
    assert [name for name, _, _ in turns] == ["a", "b", "a", "b", "a", "b"]
    assert {beams for _, _, beams in turns} == {3}


def test_batches_have_like_lengths_and_all_texts(monkeypatch):
    monkeypatch.setattr(generation, "BATCH", 2)
    assert generation.batches_by_length(["a", "b c d", "e f"]) == [["b c d", "e f"], ["a"]]


def test_bleu_is_that_of_the_tasks_order():
    task = generation.Task(model=None, texts=["x", "y"], references=["a b c d e", "f g h i j"])
    assert generation.bleu_of(task, ["y", "x"], ["f g h i j", "a b c d e"]) == pytest.approx(100)
    assert generation.bleu_of(task, ["x", "y"], ["f g h i j", "a b c d e"]) < 1


def test_a_network_that_writes_lowercase_is_scored_without_capitals():
    run = SimpleNamespace(target_tokenizer=SimpleNamespace(init_kwargs={"lowercase": True}))
    assert writes_lowercase(run)
    run.target_tokenizer.init_kwargs.clear()
    assert not writes_lowercase(run)
    task = generation.Task(None, ["x"], ["A B C D E"], "sacrebleu-lc")
    assert generation.bleu_of(task, ["x"], ["a b c d e"]) == pytest.approx(100)


def test_the_command_measures_every_engine(tmp_path, monkeypatch):
    torch.manual_seed(0)
    config = TaLKConvConfig(
        vocab_size=50, dim=32, ff_dim=32, heads=4, encoder_l_max=[3], decoder_l_max=[3]
    )
    network = TaLKConvForConditionalGeneration(config).eval()
    # other engines have tests of their own, and take long to make
    monkeypatch.setattr(generation, "make_ours", lambda mixer: network)
    monkeypatch.setattr(
        generation, "exported_engines", lambda model, folder: {ONNX: engine_of(model)}
    )
    monkeypatch.setattr(
        generation,
        "transformer_engines",
        lambda model, length, folder: ({MARIAN: lambda texts, beams: ["x"] * len(texts)}, None),
    )
    monkeypatch.setattr(generation, "VOCABULARY", 50)
    monkeypatch.setattr(generation, "RANDOM_TEXTS", 3)
    out = tmp_path / "generate.json"
    arguments = ["--alone", "2", "--beams", "2", "--out", str(out)]
    result = CliRunner().invoke(app, ["bench", "generate", *arguments])
    assert result.exit_code == 0, result.output
    speeds = json.loads(out.read_text())["results"]["beams 2"]
    assert set(speeds) == {OURS, ONNX, MARIAN}
    assert all(speed["latency"] > 0 and speed["rate"] > 0 for speed in speeds.values())
    assert "without CTranslate2" in result.output
