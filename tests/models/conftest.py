import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def authors() -> Path:
    """Checkpoints of the authors' own networks and what those networks answered."""
    shared = os.environ.get("TALKCONV_SHARED")
    if not shared:
        pytest.skip("TALKCONV_SHARED is not set: it names the folder with the authors' fixtures")
    return Path(shared) / "fixtures" / "authors"
