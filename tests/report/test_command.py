import subprocess
import sys

import pytest
from typer.testing import CliRunner

from talkconv.cli import app


def command(*words):
    return CliRunner().invoke(app, ["report", *map(str, words)])


def test_the_command_collects_runs_and_writes_the_page(workplace, tmp_path):
    answer = command(workplace / "runs", "--out", tmp_path, "--plan", workplace / "plan.toml")
    assert answer.exit_code == 0, answer.output
    assert "README.md: collected runs: tiny-talk, tiny-attention" in answer.stdout
    assert (tmp_path / "runs" / "tiny-talk" / "windows.json").is_file()
    assert not (tmp_path / "runs" / "tiny-attention" / "windows.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gone"], "gone must be a folder with runs in it"),
        ([], "plan.toml"),
    ],
)
def test_mistakes_are_one_message(tmp_path, words, message):
    answer = command(*words, "--out", tmp_path)
    assert answer.exit_code == 1
    assert message in answer.stderr
    assert "Traceback" not in answer.output


SPEED = """
import sys
from pathlib import Path
from talkconv.report.command import report_command
from talkconv.training import freed_memory

freed_memory.keep = lambda: print("kept, torch imported:", "torch" in sys.modules)
report_command([], Path(sys.argv[1]), Path(sys.argv[2]), speed=sys.argv[3] == "speed")
"""


@pytest.mark.parametrize(
    ("asked", "said"), [("speed", ["kept, torch imported: False"]), ("none", [])]
)
def test_speed_is_measured_with_the_memory_settings_of_a_training(workplace, tmp_path, asked, said):
    words = [sys.executable, "-c", SPEED, tmp_path, workplace / "plan.toml", asked]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("kept")] == said
