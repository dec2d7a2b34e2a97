"""Runs of untrained networks, which the tests of evaluation share, and files of lines."""

import pytest

from tests.evaluation.runs import language_modelling, run_on, summarization, translation


@pytest.fixture(scope="session")
def translated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translation")
    paper = {"table": 3, "metric": "tokenized_bleu", "score": 35.5}
    return run_on(translation(folder), folder / "run", paper=paper)


@pytest.fixture(scope="session")
def summarized(tmp_path_factory):
    folder = tmp_path_factory.mktemp("summarization")
    return run_on(summarization(folder), folder / "run")


@pytest.fixture(scope="session")
def modelled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("language_modelling")
    return run_on(language_modelling(folder), folder / "run")


@pytest.fixture
def files(tmp_path):
    def write(**contents):
        paths = []
        for name, lines in contents.items():
            paths.append(tmp_path / name)
            paths[-1].write_text("".join(f"{line}\n" for line in lines))
        return paths

    return write
