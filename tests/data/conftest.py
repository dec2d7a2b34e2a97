import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """Texts, and what Moses and subword-nmt made of them."""
    folder = os.environ.get("TALKCONV_SHARED")
    if not folder:
        pytest.skip("TALKCONV_SHARED is not set: it names the folder with the programs' answers")
    return Path(folder)
