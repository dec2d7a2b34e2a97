"""Runs functions in processes of their own, one after the other.

A measurement of memory needs a new process, because memory that was freed earlier, but not returned
to the system, would hide what a run takes. The processes are forked from a server that has imported
torch and never used it, so that a process starts in milliseconds.
"""

import multiprocessing
import os
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import torch

from talkconv.bench.peak_memory import limit_memory
from talkconv.threads import use_threads

Result = TypeVar("Result")
_preloaded = ["talkconv.bench.throughput"]


def preload(module: str) -> None:
    """Import a module in advance for all processes. Call this before the first of them."""
    if module not in _preloaded:
        _preloaded.append(module)


class DoesNotFit(MemoryError):
    """The function needs more memory than the machine has."""


def run_alone(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function of a module in a process of its own and return its result.

    Raise DoesNotFit if it needs more memory than is available, and RuntimeError with the traceback
    of the process if it fails in another way.
    """
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context: Any = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(_preloaded)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_serve, args=(theirs, torch.get_num_threads(), function, arguments)
    )
    process.start()
    theirs.close()
    try:
        kind, value = ours.recv()
    except EOFError:
        process.join()
        kind, value = _how_it_died(process.exitcode)
    except KeyboardInterrupt:
        process.terminate()
        raise
    process.join()
    if kind == "fits not":
        raise DoesNotFit(f"{function.__name__}{arguments} does not fit into memory: {value}")
    if kind == "failed":
        raise RuntimeError(f"{function.__name__}{arguments} failed in its process:\n{value}")
    result: Result = value
    return result


def _serve(
    connection: Connection, threads: int, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    use_threads(threads)
    limit_memory()
    try:
        connection.send(("done", function(*arguments)))
    except Exception as error:
        connection.send(("fits not" if _is_lack_of_memory(error) else "failed", _told(error)))
    connection.close()


def _end_with_parent() -> None:
    """End this process when its parent ends: it would disturb the next measurement for minutes."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _is_lack_of_memory(error: Exception) -> bool:
    # torch has no exception class for a failed CPU allocation
    words = ("can't allocate memory", "not enough memory", "could not create a memory object")
    told = str(error).lower()
    return isinstance(error, MemoryError) or any(word in told for word in words)


def _told(error: Exception) -> str:
    return "".join(traceback.format_exception(error))


def _how_it_died(exit_code: int | None) -> tuple[str, str]:
    # The system kills a process with SIGKILL when memory runs out.
    if os.name == "posix" and exit_code == -9:
        return "fits not", "the system killed the process"
    return "failed", f"the process ended with exit code {exit_code}"
