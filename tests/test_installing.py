import importlib.metadata
import json

import pytest

from talkconv import installing


@pytest.fixture
def installed_from(monkeypatch):
    def install(note):
        class Distribution:
            def read_text(self, name):
                assert name == "direct_url.json"
                return None if note is None else json.dumps(note)

        monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Distribution())

    return install


@pytest.mark.parametrize(
    ("note", "command"),
    [
        (None, "pip install 'talkconv[text]'"),
        ({"url": "file:///a/b%20c", "dir_info": {}}, "pip install '/a/b c[text]'"),
        (
            {"url": "file:///a/clone", "dir_info": {"editable": True}},
            "pip install -e '/a/clone[text]'",
        ),
        (
            {"url": "file:///a/talkconv.whl", "archive_info": {}},
            "pip install '/a/talkconv.whl[text]'",
        ),
        (
            {"url": "https://example.org/talkconv.whl", "archive_info": {}},
            "pip install 'talkconv[text] @ https://example.org/talkconv.whl'",
        ),
    ],
)
def test_the_command_names_where_the_package_came_from(installed_from, note, command):
    installed_from(note)
    assert installing.install_command("text") == command


def test_the_package_may_not_be_installed_at_all(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert installing.install_command("gpu") == "pip install 'talkconv[gpu]'"


def test_a_kernel_is_built_again_from_the_same_place(installed_from):
    installed_from({"url": "file:///a/clone", "dir_info": {}})
    assert installing.reinstall_command() == "pip install --force-reinstall --no-deps '/a/clone'"
