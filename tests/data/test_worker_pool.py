import math
import os

import pytest

from talkconv.data.worker_pool import WorkerPool


def die(_):
    os._exit(9)


def test_one_process_and_many_agree():
    with WorkerPool(1) as one, WorkerPool(2) as two:
        expected = [math.sqrt(n) for n in range(50)]
        assert list(one.run(math.sqrt, range(50))) == expected
        assert list(two.run(math.sqrt, iter(range(50)))) == expected
        # errors are raised in the parent
        with pytest.raises(ValueError, match=r"math domain|nonnegative"):
            list(two.run(math.sqrt, [1, 2, -1]))
        assert list(two.run(math.sqrt, [4, 9])) == [2, 3]


def test_tasks_are_read_no_faster_than_they_are_done():
    drawn = []

    def tasks():
        for n in range(100):
            drawn.append(n)
            yield n

    with WorkerPool(2) as pool:
        results = pool.run(math.sqrt, tasks())
        next(results)
        assert len(drawn) <= 5


def test_a_worker_that_dies_is_told():
    with (
        WorkerPool(2) as pool,
        pytest.raises(OSError, match=r"killed, perhaps because memory"),
    ):
        list(pool.run(die, range(4)))


def test_one_task_starts_no_process():
    with WorkerPool(2) as pool:
        assert list(pool.run(os.getpgid, [0])) == [os.getpgid(0)]
        assert pool._executor is None


def test_workers_are_positive():
    with pytest.raises(ValueError, match="workers must be positive, got 0"):
        WorkerPool(0)
