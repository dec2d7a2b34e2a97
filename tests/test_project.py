"""Checks that versions in two places agree, and that CONTRIBUTING.md lists all files."""

import importlib.metadata
import re
from pathlib import Path

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


def test_the_version_stands_in_the_package_alone():
    assert not re.search(r"^version =", text("pyproject.toml"), flags=re.MULTILINE)
    assert importlib.metadata.version("talkconv") == talkconv.__version__


def files_of_the_tree():
    """Return the files that the tree in CONTRIBUTING.md names, with their folders."""
    tree = re.search(r"```\nsrc/talkconv/\n(.*?)```", text("CONTRIBUTING.md"), flags=re.DOTALL)[1]
    files, folders = [], []
    for line in tree.splitlines():
        indent, name = re.match(r"( +)(\S+)", line).groups()
        folders = folders[: len(indent) // 2 - 1]
        if name.endswith("/"):
            folders.append(name)
        else:
            files.append("".join([*folders, name]))
    return files


def test_the_tree_has_one_line_for_every_file():
    source = ROOT / "src/talkconv"
    files = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.suffix in {".py", ".h", ".cpp"} and path.name != "__init__.py"
    ]
    assert sorted(files_of_the_tree()) == sorted(["__init__.py", *files])


def test_type_checkers_are_told_that_the_package_is_typed():
    assert (ROOT / "src/talkconv/py.typed").is_file()
