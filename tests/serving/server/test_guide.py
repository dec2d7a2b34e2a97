"""docs/serve.md says what holds: its limits, its refusals and its examples."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from talkconv.serving.server.openapi import PROBLEMS
from talkconv.serving.server.server_settings import ServerSettings
from tests.serving.server.cases import Client, FakeEngine, port_of, running, wait_for

TEXT = (Path(__file__).parent.parent.parent.parent / "docs/serve.md").read_text(encoding="utf-8")
# what makes the training of the guide short
SHORT = ["max_steps=4", "warmup_steps=1", "validate_every=4", "validate_limit=5"]
TASKS = {"/summarize": "summarization", "/complete": "language_modelling"}


def examples():
    """Return each command of curl with the answer that the page shows for it."""
    blocks = re.findall(
        r"^```bash\n(curl .*?)^```\n+```json\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE
    )
    return [
        pytest.param(line, json.loads(answer), id=line[:60])
        for lines, answer in blocks
        for line in lines.splitlines()
    ]


def shape(value):
    """Return a value with all texts and numbers taken away."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return type(value)


def test_the_limits_are_the_defaults():
    rows = re.findall(r"^\| `--([a-z-]+)` \| (\d+) \|", TEXT, flags=re.MULTILINE)
    assert len(rows) == 7
    for option, default in rows:
        assert getattr(ServerSettings(), option.replace("-", "_")) == int(default)
    assert ServerSettings().connections == 1000
    assert ServerSettings().read_timeout == 10


def test_every_refusal_is_explained():
    statuses = re.findall(r"^\| ([45]\d\d(?:, 4\d\d)*) \|", TEXT, flags=re.MULTILINE)
    named = {status for row in statuses for status in row.split(", ")}
    assert named == {*PROBLEMS, "404", "405", "500"}


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize(("line", "answer"), examples())
def test_the_examples_are_answered_as_shown(line, answer):
    path = re.search(r":8000(/\w+)", line)[1]
    with running(FakeEngine(TASKS.get(path, "translation"))) as client:
        command = shlex.split(line.replace(":8000/", f":{client.port}/"))
        done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert shape(json.loads(done.stdout)) == shape(answer)


def test_there_are_examples_of_every_path():
    paths = {re.search(r":8000(/\w+)", line)[1] for line in TEXT.splitlines() if "curl " in line}
    told = {"/languages", "/health", "/metrics"}
    assert paths == {"/translate", "/summarize", "/complete", *told}


@pytest.mark.slow
def test_four_commands_lead_from_text_to_a_server(tmp_path):
    """Run the commands as they are, with less training and at a port that is free."""
    (block,) = re.findall(r"in four commands\n.*?```bash\n(.*?)```", TEXT, flags=re.DOTALL)
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert [words[:2] for words in commands] == [
        ["talkconv", name] for name in ("prepare", "train", "export", "serve")
    ]
    for words in commands[:3]:
        more = [f"training.{change}" for change in SHORT] if words[1] == "train" else []
        command = [sys.executable, "-m", *words, *more]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    command = [sys.executable, "-m", *commands[3], "--port", "0"]
    pipes = dict(cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    with subprocess.Popen(command, **pipes) as server:
        client = Client(port_of(server.stderr))
        wait_for(client.is_listening)
        status, answer = client.translate("Der Hund schläft.")
        assert (status, list(answer)) == (200, ["translatedText"])
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
