"""Commands that need neither torch nor transformers do not wait seconds for their import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "transformers", "datasets")
# It runs the command line with the given words and prints the packages that were imported.
CODE = f"""
import json, sys
from talkconv.__main__ import main
sys.argv = ["talkconv", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    code = end.code
print(json.dumps([code, [name for name in {HEAVY} if name in sys.modules]]))
"""


def start(*words: object, folder: Path) -> tuple[int, list[str], str]:
    """Run a command; return its exit code, the heavy packages it imported, and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    code, imported = json.loads(done.stdout.splitlines()[-1])
    return code, imported, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hypotheses").write_text("a b c d e\n")
    (tmp_path / "references").write_text("a b c d e\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--help", "Usage"),
        ("--version", "talkconv 0"),
        ("train --help", "--resume"),
        ("doctor", "CPU kernel"),
        ("evaluate --hypotheses hypotheses --references references", "100.0"),
    ],
)
def test_light_commands_import_nothing_heavy(folder, words, said):
    code, imported, output = start(*words.split(), folder=folder)
    assert code == 0, output
    assert said in output
    assert imported == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train tony", "no recipe is called 'tony'"),
        ("train toy training.max_step=3", "did you mean 'max_steps'"),
        ("train toy model.heads=3", "heads must divide"),
        ("train toy", "must be a prepared folder"),
        ("prepare tony", "no recipe is called 'tony'"),
        ("prepare multi30k_de_en", "needs its raw files: --raw DIR"),
        ("prepare multi30k_de_en --raw .", "train.de"),
        ("generate nothing", "does not exist"),
        ("evaluate nothing", "does not exist"),
        ("evaluate", "give a run"),
        ("export nothing out", "does not exist"),
        ("serve nothing", "does not exist"),
        ("plan tony", "no recipe is called 'tony'"),
        ("report nothing", "must be a folder with runs in it"),
        ("reproduce nothing", "plan.toml must be the list of runs"),
        ("demo toy.x=1", "no section is called 'toy'"),
        ("average nothing", "has no run.json"),
        ("tune nothing", "has no run.json"),
        ("convert nothing.pt dict.txt out", "nothing.pt is not a file"),
    ],
)
def test_refusals_import_nothing_heavy(folder, words, said):
    code, imported, output = start(*words.split(), folder=folder)
    assert code == 1
    assert said in output
    assert imported == []


def test_an_existing_run_is_refused_without_heavy_imports(folder):
    """Planning a run reads its card, its checkpoints and its data."""
    (folder / "run").mkdir()
    card = {"task": "translation", "recipe": "toy", "generation": {}, "format": 1}
    (folder / "run" / "run.json").write_text(json.dumps(card))
    code, imported, output = start("train", "toy", "--out", "run", folder=folder)
    assert code == 1
    assert "already holds a run of recipe toy (without a checkpoint yet)" in output
    assert imported == []
