"""Tests that processes agree on a name, whatever earlier processes left in the store."""

import threading
import time
from datetime import timedelta

import pytest
import torch.distributed as dist

from talkconv.training.process_group import agree_on_name


def agree(store, size: int, order: list[int]) -> list[str]:
    """Let `size` processes agree, which start in this order, and return the name of each."""
    names = [""] * size

    def process(rank):
        names[rank] = agree_on_name(store, rank, size, timedelta(seconds=60))

    threads = [threading.Thread(target=process, args=[rank]) for rank in order]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    return names


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_all_processes_get_one_name_in_each_of_their_lives(order):
    store = dist.HashStore()
    lives = [agree(store, 3, order) for _ in range(3)]
    for names in lives:
        assert len(set(names)) == 1
    assert len({names[0] for names in lives}) == 3


def test_a_process_that_died_while_they_agreed_is_ignored():
    store = dist.HashStore()
    (first, _) = agree(store, 2, [0, 1])
    # a process of an earlier restart answered and was then killed
    store.set("answer/1", first + "of the dead")
    names = agree(store, 2, [1, 0])
    assert names[0] == names[1] != first


def test_a_process_alone_waits_for_nobody():
    assert len(agree_on_name(dist.HashStore(), 0, 1)) == 32


@pytest.mark.parametrize(("rank", "other"), [(0, "process 1 of 2"), (1, "the first process")])
def test_a_missing_process_is_named_with_the_cure(rank, other):
    with pytest.raises(TimeoutError, match=f"{other} did not connect: torchrun must be started on"):
        agree_on_name(dist.HashStore(), rank, 2, timedelta(seconds=0.05))
