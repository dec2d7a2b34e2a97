from argparse import Namespace

import pytest
import torch


@pytest.fixture(scope="session")
def authors(fixtures):
    """A function that loads by file name what the authors' code answered."""

    def load(name):
        with torch.serialization.safe_globals([Namespace]):
            return torch.load(fixtures / "authors" / name, weights_only=True)

    return load
