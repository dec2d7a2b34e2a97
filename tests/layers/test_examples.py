import doctest
import importlib
import pkgutil

import pytest
import torch
from torch import nn

import talkconv.layers

MODULES = [module.name for module in pkgutil.iter_modules(talkconv.layers.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_tell_the_truth(name):
    module = importlib.import_module(f"talkconv.layers.{name}")
    result = doctest.testmod(module, extraglobs={"torch": torch, "nn": nn})
    assert result.failed == 0
