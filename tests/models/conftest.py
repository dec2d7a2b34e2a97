from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def authors(fixtures) -> Path:
    """Checkpoints of the authors' own networks and what those networks answered."""
    return fixtures / "authors"
