"""Functions run on all cores, results in order, never more in memory than the cores need."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from types import TracebackType
from typing import TypeVar

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew:
    """Worker processes, started when there is work for more than one.

    >>> with Crew(workers=1) as crew:
    ...     list(crew.run(abs, [-1, 2]))
    [1, 2]
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be positive, got {workers}")
        self.workers = workers or cores()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(
        self, function: Callable[[_Task], _Result], tasks: Iterable[_Task]
    ) -> Iterator[_Result]:
        """function(task) of each task; `tasks` is read only as fast as the work is done."""
        tasks = iter(tasks)
        first = [task for _, task in zip(range(2), tasks, strict=False)]
        # processes take a second or two to start: not for one task
        if self.workers == 1 or len(first) < 2:
            yield from map(function, chain(first, tasks))
            return
        pool = self._started()
        waiting: deque[Future[_Result]] = deque()
        try:
            for task in chain(first, tasks):
                waiting.append(pool.submit(function, task))
                if len(waiting) >= 2 * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise OSError(
                "a worker process was killed, perhaps for want of memory: call again, with fewer "
                "--workers; what was finished is kept"
            ) from error

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # not fork: this process has threads, and a forked copy of their locks can hang
            ways = multiprocessing.get_all_start_methods()
            context = multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")
            if "forkserver" in ways:
                context.set_forkserver_preload(["talkconv.data.words", "talkconv.data.encoding"])
            self._pool = ProcessPoolExecutor(self.workers, context, initializer=_start_worker)
        return self._pool


def _start_worker() -> None:
    # Ctrl-C is the parent's to answer; and one process uses one core
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
