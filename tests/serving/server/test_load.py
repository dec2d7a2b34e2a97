"""Hundreds of clients against a real server in a process of its own, as docs/serve.md tells."""

import json

import pytest
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.data import toy


@pytest.mark.slow
@pytest.mark.parametrize("model", ["float32", "int8"])
def test_ten_thousand_requests_lose_nothing_and_fill_no_memory(translation, tmp_path, model):
    lines, out = tmp_path / "lines", tmp_path / "load.json"
    pairs = toy.generate({"test": 500})["test"]
    lines.write_text("".join(f"{source}\n" for source, _ in pairs), encoding="utf-8")
    words = ["bench", "serve", str(translation.folder), str(lines), "--clients", "300"]
    words += ["--model", model, "--threads", "1", "--out", str(out)]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    print(result.output)
    load = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert load["counts"]["requests"] == 10_000
    assert load["counts"]["lost"] == load["counts"]["mixed_up"] == 0
    # In int8 the outputs of random weights depend on the batch, and tell little about the text.
    if model == "float32":
        assert load["counts"]["differing"] == load["counts"]["foreign"] == 0
        assert result.exit_code == 0, result.output
    assert load["memory_after"] - load["memory_before"] < 64 * 2**20
