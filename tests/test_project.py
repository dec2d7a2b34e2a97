"""Pins that stand in two places agree, and the tree in CONTRIBUTING.md is the tree."""

import re
from pathlib import Path

import pytest

import talkconv

ROOT = Path(__file__).parent.parent


def text(name):
    return (ROOT / name).read_text()


def test_ruff_and_mypy_are_pinned_alike():
    ruff = re.search(r'"ruff==([\d.]+)"', text("pyproject.toml")).group(1)
    mypy = re.search(r'"mypy==([\d.]+)"', text("pyproject.toml")).group(1)
    assert f"rev: v{ruff}" in text(".pre-commit-config.yaml")
    assert f"ruff=={ruff}\n" in text("constraints.txt")
    assert f"mypy=={mypy}\n" in text("constraints.txt")


def test_the_version_stands_once_more_in_pyproject():
    assert f'version = "{talkconv.__version__}"' in text("pyproject.toml")


FILES = [
    path.relative_to(ROOT / "src/talkconv")
    for path in sorted((ROOT / "src/talkconv").rglob("*"))
    if path.suffix in {".py", ".h", ".cpp"} and path.name != "__init__.py"
]


@pytest.mark.parametrize("file", FILES, ids=str)
def test_the_tree_has_a_line_for_every_file(file):
    assert re.search(rf"^ +{re.escape(file.name)} +\S", text("CONTRIBUTING.md"), flags=re.MULTILINE)
