"""Puts the sentences of many clients into batches, in a queue of bounded length."""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from talkconv.serving.server.problem import Problem

# what a batch is made of: jobs with the same key are run together
Run = Callable[[Hashable, list[Any]], Sequence[Any]]


@dataclass(eq=False)
class Job:
    """One sentence that waits for its answer."""

    key: Hashable
    payload: Any
    # its length: jobs of like sizes are run together, so that little is padding
    size: int
    future: "asyncio.Future[Any]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    came: float = field(default_factory=time.monotonic)


class Batcher:
    """Runs jobs in batches, one batch after the other, in a thread of its own.

    `run(key, payloads)` returns the answer to each payload. The oldest job is always in the next
    batch, with the waiting jobs whose sizes are nearest to its own. A job leaves the queue when its
    future is cancelled.
    """

    def __init__(
        self,
        run: Run,
        executor: Executor,
        *,
        queue: int,
        batch: int,
        wait: float,
        on_batch: Callable[[int, float], object] = lambda jobs, seconds: None,
    ) -> None:
        self._run = run
        self._executor = executor
        self._capacity = queue
        self._most = batch
        self._wait = wait
        self._on_batch = on_batch
        self._waiting: list[Job] = []
        self._came = asyncio.Event()
        self._is_closed = False
        # how long a job took lately, in seconds: what clients are told to wait follows from it
        self._seconds_per_job = 0.01

    @property
    def waiting(self) -> int:
        """The number of jobs in the queue."""
        return len(self._waiting)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Put all jobs into the queue, or none of them: then a Problem says when to come again."""
        if self._is_closed:
            raise Problem(503, "the server is stopping: ask another one", retry_after=1)
        if len(self._waiting) + len(jobs) > self._capacity:
            seconds = max(1, round(self._seconds_per_job * len(self._waiting)))
            raise Problem(
                503,
                f"{len(self._waiting)} sentences are waiting, and the queue holds "
                f"{self._capacity}: try again later",
                retry_after=seconds,
            )
        self._waiting += jobs
        for job in jobs:
            # a client that goes away makes room for others at once
            job.future.add_done_callback(partial(self._leave, job))
        self._came.set()

    def close(self) -> None:
        """Refuse new jobs; those in the queue are still run."""
        self._is_closed = True

    async def work(self) -> None:
        """Run batches until the task is cancelled."""
        while True:
            await self._came.wait()
            await self._wait_for_others()
            jobs = self._next_batch()
            if jobs:
                await self._run_batch(jobs)
            if not self._waiting:
                self._came.clear()

    async def _wait_for_others(self) -> None:
        """Wait until the oldest job has waited long enough for others to come with it."""
        if self._waiting and len(self._waiting) < self._most:
            rest = self._waiting[0].came + self._wait - time.monotonic()
            await asyncio.sleep(max(0.0, rest))

    def _next_batch(self) -> list[Job]:
        if not self._waiting:
            return []
        oldest = self._waiting[0]
        alike = [job for job in self._waiting if job.key == oldest.key]
        # sorted() is stable: of two jobs of one size the older one comes first
        chosen = sorted(alike, key=lambda job: abs(job.size - oldest.size))[: self._most]
        for job in chosen:
            self._waiting.remove(job)
        return chosen

    async def _run_batch(self, jobs: list[Job]) -> None:
        began = time.monotonic()
        loop = asyncio.get_running_loop()
        payloads = [job.payload for job in jobs]
        try:
            answers = await loop.run_in_executor(self._executor, self._run, jobs[0].key, payloads)
        except Exception as error:
            # the clients of this batch learn of it; the others must not
            for job in jobs:
                if not job.future.done():
                    job.future.set_exception(error)
            return
        seconds = time.monotonic() - began
        self._seconds_per_job += 0.2 * (seconds / len(jobs) - self._seconds_per_job)
        self._on_batch(len(jobs), seconds)
        for job, answer in zip(jobs, answers, strict=True):
            if not job.future.done():
                job.future.set_result(answer)

    def _leave(self, job: Job, _: object) -> None:
        if job.future.cancelled() and job in self._waiting:
            self._waiting.remove(job)


async def answers_of(jobs: Sequence[Job]) -> list[Any]:
    """Wait for the answers to all jobs, in their order; cancel the rest if one fails."""
    try:
        return list(await asyncio.gather(*(job.future for job in jobs)))
    finally:
        for job in jobs:
            job.future.cancel()
