"""What the README says works as written."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_blocks_run():
    names = {}
    assert len(blocks("python")) >= 4
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    assert names["encoded"].shape == (2, 100, 64)
    assert names["tokens"].shape[0] == 1


def shell_lines():
    return [line.split("#")[0].strip() for block in blocks("bash") for line in block.splitlines()]


@pytest.mark.parametrize("line", [line for line in shell_lines() if line.startswith("make ")])
def test_the_make_targets_exist(line):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert set(line.split()[1:]) <= set(targets)


@pytest.mark.parametrize("line", [line for line in shell_lines() if line.startswith("talkconv ")])
def test_the_commands_exist(line):
    from talkconv.cli import app

    words = line.split()[1:]
    depth = 2 if words[0] == "bench" else 1
    result = CliRunner().invoke(app, [*words[:depth], "--help"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)h][^)]*)\)", README))
def test_the_links_lead_somewhere(link):
    assert (ROOT / link).exists()
