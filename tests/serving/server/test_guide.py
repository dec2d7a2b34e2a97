"""docs/serve.md says what holds: its limits, its refusals and its examples."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from talkconv.serving.server.openapi import PROBLEMS
from talkconv.serving.server.server_settings import ServerSettings
from tests.serving.server.cases import FakeEngine, running

TEXT = (Path(__file__).parent.parent.parent.parent / "docs/serve.md").read_text(encoding="utf-8")
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
