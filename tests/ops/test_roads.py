"""The three roads give the same results, and each call takes the road that it needs."""

import contextlib

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from talkconv import TaLKState, talk_conv, talk_conv_step
from talkconv.ops import roads
from tests.cases import make_case


class Listener(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.heard = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.heard.append(func)
        return func(*args, **(kwargs or {}))


def test_a_mode_hears_the_operators():
    case = make_case(r_max=0)
    with Listener() as listener:
        talk_conv(case.x, case.left, case.right, **case.settings)
        talk_conv_step(case.x, case.left, TaLKState.empty(2, 12, l_max=4))
    assert torch.ops.talkconv.talk_conv.default in listener.heard
    assert torch.ops.talkconv.talk_conv_step.default in listener.heard


def road_of(*tensors):
    return roads.take(lambda: "kernel", lambda: "function", lambda: "operator", tensors)


def test_the_kernel_is_called_directly_if_no_derivative_is_wanted():
    x = torch.randn(2)
    assert road_of(x) == "kernel"
    with torch.no_grad():
        assert road_of(x.clone().requires_grad_(), torch.nn.Parameter(x)) == "kernel"
    with torch.inference_mode():
        assert road_of(torch.randn(2)) == "kernel"


def test_derivatives_take_the_function():
    x = torch.randn(2)
    assert road_of(x, x.clone().requires_grad_()) == "function"
    assert road_of(torch.nn.Parameter(x)) == "function"
    found = []
    for transform in (torch.vmap, torch.func.grad):
        transform(lambda one: (found.append(road_of(one)), one.sum())[1])(x)
    torch.func.jvp(lambda one: (found.append(road_of(one)), one)[1], (x,), (x,))
    assert found == ["function"] * 3
    with torch.autograd.forward_ad.dual_level():
        assert road_of(x, torch.autograd.forward_ad.make_dual(x, x)) == "function"
        assert road_of(x) == "kernel"


class Subclass(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "tensor", [torch.randn(2).as_subclass(Subclass), torch.empty(2, device="meta")]
)
def test_what_the_kernels_cannot_read_takes_the_operator(tensor):
    assert road_of(tensor) == "operator"
    assert road_of(torch.randn(2), tensor.requires_grad_()) == "operator"


def test_a_mode_hears_the_backward():
    case = make_case(T=9)
    leaves = case.leaves()
    out = talk_conv(*leaves, **case.settings)
    with Listener() as listener:
        out.sum().backward()
    assert torch.ops.talkconv.talk_conv_backward.default in listener.heard


def test_both_roads_give_the_same_gradients(implementation):
    case = make_case(T=40)
    grads = []
    for mode in (Listener(), contextlib.nullcontext()):
        leaves = case.leaves()
        with mode:
            out = talk_conv(*leaves, **case.settings)
        grads.append(torch.autograd.grad(out.square().sum(), leaves))
    for heard, direct in zip(*grads, strict=True):
        assert torch.equal(heard, direct)


def test_both_roads_give_the_same_bits(implementation):
    case = make_case(T=40)
    direct = talk_conv(case.x, case.left, case.right, **case.settings)
    leaves = case.leaves()
    assert torch.equal(talk_conv(*leaves, **case.settings), direct)
