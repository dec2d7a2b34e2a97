import os
from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Networks as small as these gain nothing from threads, and wait for them on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """What the original programs gave."""
    shared = os.environ.get("TALKCONV_SHARED")
    if not shared:
        pytest.skip("TALKCONV_SHARED is not set: it names the folder with the programs' answers")
    return Path(shared) / "fixtures"
