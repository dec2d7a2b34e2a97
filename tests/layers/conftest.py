from argparse import Namespace

import pytest
import torch


@pytest.fixture(scope="session")
def authors(fixtures):
    """Return a function that loads outputs of the authors' code by file name."""

    def load(name):
        with torch.serialization.safe_globals([Namespace]):
            return torch.load(fixtures / "authors" / name, weights_only=True)

    return load
