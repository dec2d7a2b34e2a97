"""Exports that the tests of this room share: tracing a network takes seconds."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.runs.card import RunCard
from tests.serving.cases import language_model_run, translation_run

MAKE = {"translation": translation_run, "language_model": language_model_run}


@dataclass(frozen=True)
class Exported:
    """A run, its export, and what the command said."""

    run: Path
    folder: Path
    said: str

    @property
    def data(self) -> Path:
        """Return the prepared data of the run."""
        return Path(str(RunCard.read(self.run).data))


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Return a function that exports a run once, whichever process of the tests asks first."""

    def export(kind: str) -> Exported:
        # the workers of pytest-xdist share the parent of their folders
        root = tmp_path_factory.getbasetemp()
        root = root if root.name.startswith("pytest") else root.parent
        place = root / f"exported-{kind}"
        said = place / "said.txt"
        with FileLock(f"{place}.lock"):
            if not said.exists():
                run = MAKE[kind](place)
                words = ["export", str(run), str(place / "export"), "--int8"]
                result = CliRunner().invoke(app, words, env={"COLUMNS": "300"})
                assert result.exit_code == 0, result.output
                said.write_text(result.output, encoding="utf-8")
        return Exported(place / "run", place / "export", said.read_text(encoding="utf-8"))

    return export


@pytest.fixture(scope="session")
def translation(exported) -> Exported:
    """Return an exported translator."""
    return exported("translation")


@pytest.fixture(scope="session")
def language_model(exported) -> Exported:
    """Return an exported language model."""
    return exported("language_model")
