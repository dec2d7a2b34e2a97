import os
from argparse import Namespace
from pathlib import Path

import pytest
import torch


@pytest.fixture(scope="session")
def authors():
    """Loads what the authors' code answered, by file name."""
    shared = os.environ.get("TALKCONV_SHARED")
    if shared is None:
        pytest.skip("TALKCONV_SHARED is not set: the folder with fixtures/authors in it")
    folder = Path(shared) / "fixtures" / "authors"

    def load(name):
        with torch.serialization.safe_globals([Namespace]):
            return torch.load(folder / name, weights_only=True)

    return load
