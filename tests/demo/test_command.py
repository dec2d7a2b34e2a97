import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.demo import command
from talkconv.demo.speed import measure_speed
from talkconv.demo.windows import KINDS

SMALL = """
    data.toy_pairs=300 model.dim=16 model.ff_dim=16 model.heads=2 model.attention_heads=2
    model.encoder_l_max=[3] model.encoder_r_max=[3] model.decoder_l_max=[3] training.max_steps=4
    training.warmup_steps=1 training.validate_every=2 training.validate_limit=3
    training.log_every=1 generation.num_beams=1 generation.max_length=5
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Run a demo with a small network that is trained too briefly to learn anything."""
    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "measure_speed", lambda tell: measure_speed((8, 16), 0.001, tell))
        patch.chdir(out.parent)
        result = CliRunner().invoke(app, ["demo", "--out", "out", *SMALL.split()])
    assert result.exit_code == 0, result.output
    return out, result.output


def test_it_says_what_it_does_and_what_to_type_next(demo):
    _, output = demo
    steps = (
        "A grammar makes",
        "learns to translate",
        "never seen",
        "How fast",
        "What to type next",
    )
    places = [output.index(step) for step in steps]
    assert places == sorted(places)
    assert re.search(r"BLEU \d+\.\d on 100 sentences", output)
    assert "Open out/index.html" in output


def test_it_leaves_a_page_and_a_run(demo):
    out, _ = demo
    assert sorted(one.name for one in out.iterdir()) == ["data", "index.html", "run"]
    assert (out / "run" / "best" / "model.safetensors").exists()
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.count("<li>") == 12
    assert '"r_max":3' in page


def test_the_commands_it_names_exist(demo):
    _, output = demo
    lines = [line.strip() for line in output.split("What to type next")[1].splitlines()]
    commands = re.findall(r"talkconv ([a-z]+)", "\n".join(lines))
    assert {"generate", "evaluate", "train", "prepare", "serve"} <= set(commands)
    for name in commands:
        assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0, name


def test_it_ends_by_telling_how_to_start_the_server(demo):
    out, output = demo
    why, line = (line.strip() for line in output.rstrip().splitlines()[-2:])
    assert why.startswith("Start a server with this network")
    assert "http://127.0.0.1:8000" in why
    program, *words = shlex.split(line)
    # the run that was just trained, as seen from the folder where the demo was started
    assert words == ["serve", "out/run"]
    assert (out.parent / words[1]).samefile(out / "run")
    assert "serve out/run" in (out / "index.html").read_text(encoding="utf-8")
    asked = [shutil.which(program) or program, "--version"]
    assert subprocess.run(asked, capture_output=True, check=True).stdout.startswith(b"talkconv ")


@pytest.mark.parametrize("is_on_path", [True, False])
def test_the_command_is_named_so_that_the_shell_finds_it(tmp_path, monkeypatch, is_on_path):
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "talkconv"):
        (folder / name).touch(mode=0o755)
    monkeypatch.setattr(command.sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder if is_on_path else tmp_path))
    monkeypatch.chdir(tmp_path)
    last = command._commands(Path("demo/run"), Path("demo/data"))[-1][1]
    assert last == f"{'talkconv' if is_on_path else '.venv/bin/talkconv'} serve demo/run"


def test_another_demo_takes_the_place_of_the_first_and_of_nothing_else(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "run" / "run.json").touch()
    (tmp_path / "data" / "mine.txt").touch()
    command._clear(tmp_path / "data", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert (tmp_path / "data" / "mine.txt").exists()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.mixer=attention", "model.mixer must be talk"),
        ("training.max_step=3", "max_steps"),
    ],
)
def test_mistakes_are_one_message(tmp_path, override, message):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "out"), override])
    assert result.exit_code == 1
    assert result.output.startswith("no demo:")
    assert message in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_it_learns(tmp_path):
    found = command.run_demo(tmp_path / "demo", [], Console())
    assert found.bleu >= 95
    assert len(found.sentences) == len(KINDS)
