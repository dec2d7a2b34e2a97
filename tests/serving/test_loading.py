"""An export answers as its run does, and needs neither torch nor transformers."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import talkconv
from talkconv.cli import app
from tests.serving.cases import LINES

# Makes Python fail to import these packages, as if they were not installed.
BLOCK = """
import sys
from importlib.machinery import PathFinder

find_spec, blocked = PathFinder.find_spec, {"torch", "transformers", "datasets", "pyarrow", "onnx"}

def find_others(name, path=None, target=None):
    return None if name.split(".")[0] in blocked else find_spec(name, path, target)

PathFinder.find_spec = find_others
"""


def without_torch(code, given=""):
    """Run code in a process that cannot import torch."""
    command = [sys.executable, "-c", BLOCK + code]
    done = subprocess.run(command, capture_output=True, text=True, input=given, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("beams", [1, 3])
def test_an_export_answers_as_its_run(translation, beams):
    run, export = talkconv.load(translation.run), talkconv.load(translation.folder, threads=1)
    assert export.task == run.task
    assert export.settings == run.settings
    ours, theirs = (
        [[(o.text, o.tokens, round(o.score, 4)) for o in each] for each in found]
        for found in (model.outputs(LINES, n_best=beams, beams=beams) for model in (export, run))
    )
    assert ours == theirs
    assert export.translate(LINES[0], beams=beams) == ours[0][0][0]


@pytest.mark.parametrize(
    "changes",
    [
        dict(no_repeat_ngram=2, min_length=5),
        dict(length_penalty=0.3, stepwise_length_penalty=-0.5, max_ratio=1.0, max_extra=1),
        dict(max_source_tokens=4, batch_tokens=8),
    ],
)
def test_every_setting_of_generation_is_followed(translation, changes):
    models = [talkconv.load(folder) for folder in (translation.run, translation.folder)]
    theirs, ours = (
        [o.tokens for (o,) in model.outputs(LINES, on_cut=print, **changes)] for model in models
    )
    assert ours == theirs


def test_a_language_model_completes_and_samples_alike(language_model):
    prompts = ["one two", "three", "", "one two two three one two"]
    models = [talkconv.load(folder) for folder in (language_model.run, language_model.folder)]
    for changes in (dict(), dict(temperature=0.8, top_k=4, seed=3)):
        theirs, ours = (model.complete(prompts, **changes) for model in models)
        assert ours == theirs
    assert any(ours)


def test_int8_is_another_network_of_the_same_export(translation):
    exact, rounded = (talkconv.load(translation.folder, name) for name in ("float32", "int8"))
    source = np.array([[5, 9, 7, 2]])
    ours, theirs = (
        model.network.begin(1, model.network.encode(source, np.ones_like(source))).logits(
            np.array([[2, 5]]), 2
        )
        for model in (exact, rounded)
    )
    assert 1e-4 < np.abs(ours - theirs).max() < 1


def test_an_export_runs_on_the_cpu(translation):
    with pytest.raises(ValueError, match="an export runs on the CPU"):
        talkconv.load(translation.folder, device="cuda")


def test_the_commands_read_an_export(translation):
    given = "\n".join(LINES) + "\n"
    runner = CliRunner()

    def answer(folder, *options):
        result = runner.invoke(app, ["generate", str(folder), *options], input=given)
        assert result.exit_code == 0, result.output
        return result.output

    assert answer(translation.folder, "--threads", "1") == answer(translation.run)
    assert answer(translation.run, "--threads", "1") == answer(translation.run)
    fast = answer(translation.folder, "--fast")
    assert fast == answer(translation.folder, "--model", "int8", "--beams", "1")
    assert answer(translation.run, "--fast") == answer(translation.run, "--beams", "1")
    result = runner.invoke(app, ["generate", str(translation.folder), "--model", "best"])
    assert result.exit_code == 1
    assert "has no network 'best': it has float32, int8" in result.output


def test_threads_reach_the_network(translation, monkeypatch):
    told = []
    monkeypatch.setattr(torch, "set_num_threads", told.append)
    words = ["--threads", "3", "--beams", "1"]
    result = CliRunner().invoke(app, ["generate", str(translation.run), *words], input="Katze\n")
    assert (result.exit_code, told) == (0, [3])
    network = talkconv.load(translation.folder, threads=3).network
    for session in (network._encoder, network._decoder):
        assert session.get_session_options().intra_op_num_threads == 3
    for threads in ("0", "many"):
        words = ["generate", str(translation.folder), "--threads", threads]
        assert CliRunner().invoke(app, words).exit_code == 2


def test_fast_leaves_what_is_asked_for(translation):
    """--fast is greedy and int8 unless --beams or --model say otherwise."""

    def answer(*options):
        words = ["generate", str(translation.folder), "--scores", *options]
        result = CliRunner().invoke(app, words, input="\n".join(LINES) + "\n")
        assert result.exit_code == 0, result.output
        return result.output

    assert answer("--fast", "--beams", "3") == answer("--model", "int8", "--beams", "3")
    assert answer("--fast", "--model", "float32") == answer("--model", "float32", "--beams", "1")
    assert answer("--fast") != answer("--fast", "--model", "float32")


def test_python_reads_an_export_without_torch(translation):
    code = f"""
import talkconv
print("\\n".join(talkconv.load({str(translation.folder)!r}).generate({LINES!r}, beams=2)))
assert "torch" not in sys.modules
try:
    talkconv.talk_conv
except ImportError as error:
    print(error)
"""
    *outputs, missing = without_torch(code).split("\n")[:-1]
    assert outputs == talkconv.load(translation.run).generate(LINES, beams=2)
    assert "talkconv.talk_conv needs torch: pip install" in missing
    assert "[torch]'" in missing


def test_the_command_line_reads_an_export_without_torch(translation):
    code = f"""
sys.argv = ["talkconv", "generate", {str(translation.folder)!r}]
from talkconv.__main__ import main
main()
"""
    found = without_torch(code, "\n".join(LINES) + "\n")
    assert found.split("\n")[:-1] == talkconv.load(translation.run).generate(LINES)


def test_a_command_that_needs_torch_says_so(translation):
    code = f"""
sys.argv = ["talkconv", "generate", {str(translation.run)!r}]
from talkconv.__main__ import main
try:
    main()
except SystemExit as error:
    print(error)
"""
    found = without_torch(code)
    assert "talkconv: this command needs torch: pip install" in found
    assert "[text]'" in found
