import doctest
import importlib
import pkgutil

import pytest

import talkconv.data

MODULES = [module.name for module in pkgutil.iter_modules(talkconv.data.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_tell_the_truth(name):
    result = doctest.testmod(importlib.import_module(f"talkconv.data.{name}"))
    assert result.failed == 0
