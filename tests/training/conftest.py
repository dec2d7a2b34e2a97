import io

import pytest
from datasets import disable_progress_bars
from rich.console import Console
from transformers.utils.logging import disable_progress_bar

from talkconv.training.request import Request
from tests.training.cases import write_prepared, write_recipe


@pytest.fixture
def silence() -> Console:
    return Console(file=io.StringIO(), width=200)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Return the folder of a prepared task, which is made once."""
    disable_progress_bars()
    disable_progress_bar()
    made = {}

    def folder(task="translation"):
        if task not in made:
            made[task] = write_prepared(tmp_path_factory.mktemp("data") / task, task)
        return made[task]

    return folder


@pytest.fixture
def request_for(tmp_path, prepared):
    """Return a function that makes a request to train a tiny recipe, in a new folder."""

    def make(task="translation", out="run", **sections):
        path = write_recipe(tmp_path / f"{task}.toml", task, **sections)
        return Request(str(path), data=prepared(task), out=tmp_path / out)

    return make
