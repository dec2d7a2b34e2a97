"""Runs functions in a process in which Triton compiles.

In the process of the tests Triton interprets, and it can do only one of the two. The other process
is started once: it takes seconds to import torch, and it keeps what it compiled and disassembled.
"""

import functools
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any


def compiling(function: Callable, *arguments: Any) -> Any:
    """Call a function of a module that can be imported; return its result or raise its error."""
    return _process().submit(function, *arguments).result()


@functools.cache
def _process() -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=_stop_interpreting)


def _stop_interpreting() -> None:
    # Triton reads it when it is imported, which is later
    os.environ.pop("TRITON_INTERPRET", None)
