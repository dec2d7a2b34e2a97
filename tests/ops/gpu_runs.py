"""Runs the GPU kernels in Triton's interpreter, which rounds as a GPU does, or on a GPU."""

import dataclasses
import itertools
import os

import pytest
import torch
from torch import Tensor

from talkconv.ops import gpu
from tests.cases import Case, assert_exact, exact, exact_grads

pytest.importorskip("triton", reason="the GPU kernels need Triton: pip install 'talkconv[gpu]'")

from talkconv.ops import gpu_plans
from tests.ops.interpreter import act_as_a_gpu

# benchmarks/on_a_gpu.sh sets this to cuda
DEVICE = torch.device(os.environ.get("TALKCONV_TEST_DEVICE", "cpu"))
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]

# Many blocks, chunks and slices in few tokens, which the interpreter has time for. Tests that ask
# for `real_sizes` take the sizes that a GPU gets.
SMALL = dict(
    chunk=16,
    step=8,
    slab=16,
    block=16,
    channels=4,
    slices=2,
    repair_block=16,
    tile=8,
    event_chunk=8,
    event_chunks=2,
    event_channels=8,
    event_block=8,
    dense_block=16,
    dense_tile=16,
    dense_channels=16,
)

# the two ways of the backward: by products with weights, and by sorted events
WAYS = {"products": 2**40, "events": 0}


def combinations(chosen: list[tuple], *axes) -> list:
    """Return all combinations of the axes as parameters of a test; those not chosen are slow.

    The normal suite has every value of every axis at least once.
    """
    for k, axis in enumerate(axes):
        missing = [value for value in axis if value not in [each[k] for each in chosen]]
        assert not missing, f"the normal suite leaves out {missing}"
    every = list(itertools.product(*axes))
    assert all(each in every for each in chosen), "a chosen combination is not one of the axes"
    marks = ([] if each in chosen else [pytest.mark.slow] for each in every)
    return [pytest.param(*each, marks=mark) for each, mark in zip(every, marks, strict=True)]


@pytest.fixture
def real_sizes():
    """Let the kernels cut their work as on a GPU."""


def fill_fresh_memory(monkeypatch) -> None:
    """Fill fresh memory with NaN, so that an element which no program writes shows."""
    new_empty = torch.Tensor.new_empty

    def full_of_nan(*args, **kwargs):
        fresh = new_empty(*args, **kwargs)
        return fresh.fill_(torch.nan) if fresh.is_floating_point() else fresh.fill_(-1)

    monkeypatch.setattr(torch.Tensor, "new_empty", full_of_nan)


@pytest.fixture
def as_on_a_gpu(monkeypatch, request):
    """Let the interpreter compute as a GPU does, with small sizes unless `real_sizes` is asked."""
    fill_fresh_memory(monkeypatch)
    if DEVICE.type != "cpu":
        return
    act_as_a_gpu()
    if "real_sizes" not in request.fixturenames:
        sizes_of = gpu_plans.sizes_of
        monkeypatch.setattr(
            gpu_plans, "sizes_of", lambda *args: dataclasses.replace(sizes_of(*args), **SMALL)
        )


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Take one way of the backward for all windows."""
    monkeypatch.setattr(gpu_plans, "SHORT_WINDOW", WAYS[request.param])
    return request.param


def on_device(value):
    return value.to(DEVICE) if isinstance(value, Tensor) else value


def arguments(case: Case) -> tuple:
    settings = dict(max_offset=1.0, normalize=True, lengths=None, cu_seqlens=None) | case.settings
    names = ("l_max", "r_max", "max_offset", "normalize", "lengths", "cu_seqlens")
    return case.x, case.left, case.right, *(settings[name] for name in names)


def run(case: Case) -> Tensor:
    return gpu.talk_conv(*map(on_device, arguments(case))).cpu()


def random_grad(case: Case) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(case.x.shape, generator=generator).to(case.x.dtype)


def run_backward(case: Case, grad_out: Tensor) -> tuple[Tensor, ...]:
    grads = gpu.talk_conv_backward(*map(on_device, (grad_out, *arguments(case))))
    return tuple(grad.cpu() for grad in grads)


def run_all(case: Case, grad_out: Tensor) -> tuple[Tensor, ...]:
    """Return the output and the three gradients."""
    return run(case), *run_backward(case, grad_out)


def assert_right(case: Case) -> None:
    assert_exact(run(case), exact(case), "out")
    assert_right_backward(case)


def assert_right_backward(case: Case) -> None:
    grad_out = random_grad(case)
    grads = run_backward(case, grad_out)
    names = ("grad_x", "grad_left", "grad_right")
    for name, grad, expected in zip(names, grads, exact_grads(case, grad_out), strict=True):
        assert_exact(grad, expected, name)
