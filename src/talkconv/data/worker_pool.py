"""Runs a function on all cores, with results in the order of the tasks and bounded memory."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from types import TracebackType
from typing import TypeVar

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerPool:
    """Worker processes, which are started when there is more than one task.

    >>> with WorkerPool(workers=1) as pool:
    ...     list(pool.run(abs, [-1, 2]))
    [1, 2]
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be positive, got {workers}")
        self.workers = workers or cores()
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def run(
        self, function: Callable[[_Task], _Result], tasks: Iterable[_Task]
    ) -> Iterator[_Result]:
        """Yield function(task) for each task, in order.

        Tasks are read as late as possible: for each worker, at most two are running or have
        results that are not taken yet.
        """
        tasks = iter(tasks)
        first = list(islice(tasks, 2))
        # Processes take a second or two to start, which is too long for one task.
        if self.workers == 1 or len(first) < 2:
            yield from map(function, chain(first, tasks))
            return
        executor = self._started()
        waiting: deque[Future[_Result]] = deque()
        try:
            for task in chain(first, tasks):
                waiting.append(executor.submit(function, task))
                if len(waiting) >= 2 * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise OSError(
                "a worker process was killed, perhaps because memory ran out: call again, with "
                "fewer --workers; what was finished is kept"
            ) from error

    def _started(self) -> ProcessPoolExecutor:
        if self._executor is None:
            # A fork also copies the locks of other threads, and could wait for them forever.
            methods = multiprocessing.get_all_start_methods()
            server = "forkserver" in methods
            context = multiprocessing.get_context("forkserver" if server else "spawn")
            if server:
                context.set_forkserver_preload(["talkconv.data.words", "talkconv.data.encoding"])
            self._executor = ProcessPoolExecutor(self.workers, context, initializer=_start_worker)
        return self._executor


def _start_worker() -> None:
    # The parent handles Ctrl-C for all, and each process uses one core.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
