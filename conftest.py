"""Settings that the tests and the examples in docstrings share."""

import os

# Triton reads this when it is imported, whoever imports it first: the GPU kernels run in its
# interpreter here. What needs its compiler runs in a process of its own. benchmarks/on_a_gpu.sh
# sets the device to a GPU, where the same tests launch the compiled kernels.
if os.environ.get("TALKCONV_TEST_DEVICE", "cpu") == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"

import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def _names_of_examples(doctest_namespace):
    """Give every example in a docstring the names that a reader takes for granted."""
    doctest_namespace.update(torch=torch, nn=nn)
