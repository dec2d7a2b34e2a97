"""What looks like an earlier tensor, and what must not be taken for one."""

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from talkconv.ops.guards import guard

SHAPE = (2, 3, 4)


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.fixture
def fits():
    return guard(torch.randn(SHAPE))


def test_equal_looks(fits):
    assert fits(torch.zeros(SHAPE))
    with torch.no_grad():
        assert fits(torch.zeros(SHAPE))


@pytest.mark.parametrize(
    "other",
    [
        torch.zeros(2, 4, 3),
        torch.zeros(3, 2, 4).transpose(0, 1),
        torch.zeros(SHAPE, dtype=torch.float64),
        torch.zeros(SHAPE, device="meta"),
        torch.zeros(SHAPE).requires_grad_(),
        torch.nn.Parameter(torch.zeros(SHAPE)),
        torch._neg_view(torch.zeros(SHAPE)),
        torch._efficientzerotensor(SHAPE),
        None,
        [0.0],
    ],
)
def test_other_looks(fits, other):
    assert not fits(other)


def test_whoever_listens_is_another_look(fits):
    x = torch.zeros(SHAPE)
    found = []

    def look(one):
        found.extend((fits(one), fits(x)))
        return one.sum()

    torch.func.vmap(look)(torch.zeros(5, *SHAPE))
    torch.func.grad(look)(x)
    for mode in (Mode(), torch.inference_mode(), torch.autocast("cpu")):
        with mode:
            found.append(fits(x))
    assert found == [False] * 7


def test_it_keeps_nothing_alive():
    x = torch.randn(SHAPE)
    alive = weakref.ref(x)
    check = guard(x)
    del x
    assert alive() is None
    assert check(torch.randn(SHAPE))
