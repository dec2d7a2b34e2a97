import json

import pytest
from typer.testing import CliRunner

from talkconv.bench import op
from talkconv.bench.inputs import FORWARD, TRAINING
from talkconv.bench.measure import Timing
from talkconv.bench.methods import FUSED, OURS
from talkconv.cli import app


def timings(**seconds):
    names = {"ours": OURS, "fused": FUSED, "clone": op.CLONE}
    return {names[name]: Timing(value, value, value, 1) for name, value in seconds.items()}


def verdicts(n, direction, **seconds):
    return [bar.verdict for bar in op.timing_bars(n, direction, timings(**seconds))]


@pytest.mark.parametrize(
    ("n", "direction", "least"),
    [
        (10, FORWARD, 5),
        (100, FORWARD, 10),
        (1000, FORWARD, 25),
        (10_000, FORWARD, 250),
        (10, TRAINING, 3),
        (100, TRAINING, 9),
        (1000, TRAINING, 20),
    ],
)
def test_the_bar_against_fused_attention(n, direction, least):
    def found(speedup):
        return verdicts(n, direction, ours=1.0, fused=speedup, clone=10.0)[0]

    assert found(least * 1.01) == "met"
    assert found(least * 0.99) == "not met"


def test_the_bar_against_a_copy_holds_for_long_inputs():
    assert verdicts(1000, FORWARD, ours=0.7, fused=100.0, clone=1.0) == ["met", "met"]
    assert verdicts(1000, FORWARD, ours=0.71, fused=100.0, clone=1.0) == ["met", "not met"]
    assert len(verdicts(100, FORWARD, ours=2.0, fused=100.0, clone=1.0)) == 1


def test_the_bar_on_wide_windows():
    def found(wide):
        seconds = {"3": 1.0, "7": 1.0, "31": 1.0, "127": 1.0, "255": wide}
        return op.windows_bar({k: Timing(v, v, v, 1) for k, v in seconds.items()}).verdict

    assert found(1.5) == "met"
    assert found(1.51) == "not met"


@pytest.fixture
def few_methods(monkeypatch):
    chosen = {name: op.METHODS[name] for name in (OURS, FUSED)}
    monkeypatch.setattr(op, "METHODS", chosen)


@pytest.mark.usefixtures("few_methods")
def test_only_the_lengths_asked_for_are_run_and_nothing_is_overwritten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    committed = tmp_path / "results" / "op.json"
    committed.parent.mkdir()
    committed.write_text("committed")
    asked = []
    original = op.contestants
    monkeypatch.setattr(op, "contestants", lambda n: asked.append(n) or original(n))
    result = CliRunner().invoke(app, ["bench", "op", "--n", "12", "--seconds", "0"])
    assert result.exit_code == 0, result.output
    assert asked == [12]
    assert "1,000" not in result.output
    assert committed.read_text() == "committed"
    assert [path.name for path in tmp_path.rglob("*")] == ["results", "op.json"]


@pytest.mark.usefixtures("few_methods")
def test_results_are_written_where_told(tmp_path):
    out = tmp_path / "op.json"
    arguments = ["bench", "op", "--n", "10", "--seconds", "0", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    results = json.loads(out.read_text())["results"]
    assert [row["direction"] for row in results["timings"]] == [FORWARD, TRAINING]
    assert {OURS, FUSED, op.CLONE} <= set(results["timings"][0]["timings"])
    assert [bar["limit"] for bar in results["bars"]] == [5, 3]
    assert results["windows"] == {}


def test_only_a_clone_gives_free_memory_back_before_it_is_timed(monkeypatch):
    trimmed = []
    monkeypatch.setattr(op, "trim_heap", lambda: trimmed.append(True))
    runs = {op.CLONE: lambda: None, "TaLK": lambda: None}
    seconds = op.timer_of(runs)
    assert seconds(runs["TaLK"]) >= 0
    assert not trimmed
    assert seconds(runs[op.CLONE]) >= 0
    assert trimmed == [True]
