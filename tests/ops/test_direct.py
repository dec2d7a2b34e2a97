"""Going past the dispatcher changes nothing but the time: whoever listens is still asked."""

import contextlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from talkconv import TaLKState, talk_conv, talk_conv_step
from talkconv.ops.direct import nobody_listens
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


def test_who_listens():
    x = torch.randn(2)
    assert nobody_listens(x)
    assert not nobody_listens(x, x.clone().requires_grad_())
    assert not nobody_listens(torch.nn.Parameter(x))
    with torch.no_grad():
        assert nobody_listens(x.clone().requires_grad_())
    found = []
    torch.vmap(lambda one: (found.append(nobody_listens(one)), one)[1])(x)
    assert found == [False]


def test_a_mode_hears_the_backward():
    case = make_case(T=9)
    leaves = case.leaves()
    out = talk_conv(*leaves, **case.settings)
    with Listener() as listener:
        out.sum().backward()
    assert torch.ops.talkconv.talk_conv_backward.default in listener.heard


def test_forward_mode_is_not_passed_by():
    x = torch.randn(2)
    with torch.autograd.forward_ad.dual_level():
        assert not nobody_listens(x)
    assert nobody_listens(x)


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
