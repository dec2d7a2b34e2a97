"""Tests that large outputs use kept memory again, which must change nothing but the time."""

import multiprocessing
import re
import sys
import threading
from pathlib import Path

import pytest
import torch

from talkconv import talk_conv
from talkconv.ops import memory
from talkconv.ops.library import find_kernel

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="memory is kept on Linux"),
    pytest.mark.skipif(find_kernel() is None, reason="the kernel's outputs are kept"),
]
BLOCK = memory.LARGE


@pytest.fixture(autouse=True)
def nothing_kept():
    memory.release()
    yield
    memory.release()


def call(size=BLOCK, fill=1.0, dtype=torch.float32, **settings):
    """Return an output of `size` bytes. With windows of one token it is `fill` everywhere."""
    channels = 64
    tokens = size // channels // dtype.itemsize
    x = torch.full((1, tokens, channels), fill, dtype=dtype)
    offsets = torch.zeros(1, tokens, 4, requires_grad=settings.pop("train", False))
    return talk_conv(x, offsets, offsets, l_max=2, r_max=1, normalize=False, **settings)


def test_a_dead_output_makes_room_for_the_next():
    out = call()
    address = out.data_ptr()
    assert memory.kept_bytes() == 0
    del out
    assert memory.kept_bytes() == BLOCK
    again = call(fill=2.0)
    assert again.data_ptr() == address
    assert bool((again == 2).all())
    assert memory.kept_bytes() == 0
    del again
    assert memory._leases == {}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_kept_memory_serves_every_dtype(dtype):
    address = call().data_ptr()
    out = call(dtype=dtype, fill=3.0)
    assert out.data_ptr() == address
    assert out.dtype == dtype
    assert bool((out == 3).all())


def test_small_outputs_are_left_to_torch():
    call(size=BLOCK // 2)
    call(size=BLOCK // 2, lengths=torch.tensor([99]))  # by another road
    assert memory.kept_bytes() == 0


def test_outputs_in_use_share_nothing():
    outs = [call(fill=float(k)) for k in range(8)]
    for k, out in enumerate(outs):
        assert bool((out == k).all())
    assert len({out.data_ptr() for out in outs}) == 8


def test_a_view_keeps_the_memory_of_its_output():
    out = call(fill=5.0)
    part = out[:, 3:7]
    del out
    others = [call(fill=6.0) for _ in range(3)]
    assert bool((part == 5).all())
    assert all(bool((other == 6).all()) for other in others)
    assert memory.kept_bytes() == 0


def test_outputs_of_almost_one_size_share_their_blocks():
    size = BLOCK * 9 // 8
    address = call(size).data_ptr()
    assert memory.kept_bytes() == size
    assert call(BLOCK * 17 // 16).data_ptr() == address
    assert call(BLOCK).data_ptr() != address
    assert memory.kept_bytes() == size + BLOCK


def test_no_more_is_kept_than_the_limit(monkeypatch):
    monkeypatch.setattr(memory, "most_kept_bytes", lambda: 3 * BLOCK)
    outs = [call(fill=float(k)) for k in range(5)]
    addresses = [out.data_ptr() for out in outs]
    while outs:
        outs.pop()  # the last first
    assert memory.kept_bytes() == 3 * BLOCK
    again = [call() for _ in range(3)]
    assert {out.data_ptr() for out in again} == set(addresses[:3])


def test_blocks_of_other_sizes_make_room_first(monkeypatch):
    monkeypatch.setattr(memory, "most_kept_bytes", lambda: 3 * BLOCK)
    old = [call() for _ in range(3)]
    new = [call(2 * BLOCK)]
    old.clear()
    assert memory.kept_bytes() == 3 * BLOCK
    address = new.pop().data_ptr()
    assert memory.kept_bytes() == 3 * BLOCK
    assert call(2 * BLOCK).data_ptr() == address
    call(4 * BLOCK)
    assert memory.kept_bytes() == 0  # one that exceeds the limit alone is not kept either


def test_what_is_kept_is_a_sixteenth_of_what_the_process_may_use(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_CGROUP_LIMIT", limit)
    limit.write_text("max\n")
    machine = memory.most_kept_bytes.__wrapped__()
    assert machine > BLOCK
    limit.write_text(f"{16 * BLOCK}\n")
    assert memory.most_kept_bytes.__wrapped__() == BLOCK
    limit.unlink()
    assert memory.most_kept_bytes.__wrapped__() == machine


def test_release_gives_back_only_what_nobody_uses():
    out = call(fill=7.0)
    call()
    assert memory.kept_bytes() == BLOCK
    memory.release()
    assert memory.kept_bytes() == 0
    assert bool((out == 7).all())


def test_an_output_may_be_written_to_and_trained_through():
    out = call(train=True)
    assert not out._is_view()
    out.mul_(2)
    out.sum().backward()
    assert bool((out == 2).all())


def test_gradients_come_from_kept_memory_too():
    x = torch.ones(1, BLOCK // 256, 64, requires_grad=True)
    offsets = torch.zeros(1, x.shape[1], 4)
    for _ in range(2):
        x.grad = None
        out = talk_conv(x, offsets, offsets, l_max=2, r_max=1, normalize=False)
        out.backward(torch.ones_like(out))
        assert bool((x.grad == 1).all())
        del out
        assert memory.kept_bytes() == BLOCK  # the gradient has another
    x.grad = None
    assert memory.kept_bytes() == 2 * BLOCK


def test_if_no_memory_can_be_kept_torch_allocates_the_output(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("Cannot allocate memory")

    call()
    assert memory.kept_bytes() == BLOCK
    monkeypatch.setattr(memory.mmap, "mmap", refuse)
    assert bool((call(2 * BLOCK, fill=4.0) == 4).all())
    # the system needs what was kept
    assert memory.kept_bytes() == 0


def test_threads_do_not_get_in_each_others_way():
    wrong = []

    def work(fill):
        for _ in range(30):
            out = call(fill=fill)
            if not bool((out == fill).all()):
                wrong.append(fill)

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    # the last output of a thread is freed only when the next one exists
    assert BLOCK <= memory.kept_bytes() <= 12 * BLOCK


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_starts_with_nothing_kept():
    call()
    assert memory.kept_bytes() == BLOCK
    context = multiprocessing.get_context("fork")
    kept = context.Queue()
    child = context.Process(target=lambda: kept.put(memory.kept_bytes()))
    child.start()
    assert kept.get(timeout=30) == 0
    child.join(30)
    assert memory.kept_bytes() == BLOCK


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="the system has no huge pages"
)
def test_large_outputs_ask_for_huge_pages():
    assert "hg" in flags_of(call(size=8 << 20).data_ptr())


def flags_of(address):
    """Return the flags of the mapping that an address lies in."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        bounds = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if bounds:
            begin, end = (int(bound, 16) for bound in bounds.groups())
            inside = begin <= address < end
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    raise AssertionError("no mapping has this address")
