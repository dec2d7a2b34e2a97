"""Tests calls of the CPU kernel: tensors in any memory layout, and calls one after the other."""

import pytest
import torch

from talkconv import talk_conv
from talkconv.ops import library
from tests.cases import make_case


def test_the_second_call_gives_the_bits_of_the_first(implementation):
    one, two = make_case(seed=1), make_case(seed=2)
    wanted = [torch.ops.talkconv.talk_conv(*inputs_of(case)) for case in (one, two)]
    for _ in range(2):
        for case, want in zip((one, two), wanted, strict=True):
            got = talk_conv(case.x, case.left, case.right, **case.settings)
            assert torch.equal(got, want)


def inputs_of(case):
    numbers = (case.settings["l_max"], case.settings["r_max"], case.settings["max_offset"])
    return case.x, case.left, case.right, *numbers, True, None, None


def test_calls_with_other_settings_give_other_results():
    case = make_case(B=2, T=12, C=12, H=3)
    first = talk_conv(case.x, case.left, case.right, **case.settings)
    for change in (dict(l_max=2), dict(r_max=1), dict(max_offset=0.5), dict(normalize=False)):
        changed = talk_conv(case.x, case.left, case.right, **{**case.settings, **change})
        assert not torch.equal(changed, first)
    as_double = talk_conv(case.x.double(), case.left, case.right, **case.settings)
    assert as_double.dtype == torch.float64
    torch.testing.assert_close(as_double.float(), first)
    folded = [tensor.view(4, 6, -1) for tensor in (case.x, case.left, case.right)]
    assert not torch.equal(talk_conv(*folded, **case.settings).view(2, 12, 12), first)


def test_strided_offsets_and_rows():
    case = make_case(T=20)
    want = talk_conv(case.x, case.left, case.right, **case.settings)
    left, right = torch.cat((case.left, case.right), -1).chunk(2, -1)
    time_first = case.x.transpose(0, 1).contiguous().transpose(0, 1)
    channels_first = case.x.transpose(1, 2).contiguous().transpose(1, 2)
    for _ in range(2):
        for x in (case.x, time_first, channels_first):
            assert torch.equal(talk_conv(x, left, right, **case.settings), want)


def test_one_token_may_have_any_stride():
    case = make_case(B=3, T=1)
    odd = case.x.as_strided(case.x.shape, (case.x.shape[-1], 10**12, 1))
    assert odd.is_contiguous()
    want = talk_conv(case.x, case.left, case.right, **case.settings)
    for _ in range(2):
        assert torch.equal(talk_conv(odd, case.left, case.right, **case.settings), want)


def test_gradients_of_a_repeated_call(implementation):
    for case in (make_case(seed=1), make_case(seed=2), make_case(seed=3, r_max=0)):
        leaves = case.leaves()
        grad_out = torch.randn_like(case.x)
        right = leaves[2] if case.settings["r_max"] else None
        out = talk_conv(leaves[0], leaves[1], right, **case.settings)
        wanted = torch.ops.talkconv.talk_conv_backward(grad_out, *inputs_of(case))
        for leaf, want in zip(leaves[: 2 + (right is not None)], wanted, strict=False):
            (grad,) = torch.autograd.grad(out, leaf, grad_out, retain_graph=True)
            assert torch.equal(grad, want)


def test_gradients_of_any_stride_and_dtype():
    case = make_case()
    leaves = case.leaves()
    out = talk_conv(*leaves, **case.settings)
    plain = torch.randn_like(case.x)
    time_first = plain.transpose(0, 1).contiguous().transpose(0, 1)
    wanted = torch.ops.talkconv.talk_conv_backward(plain, *inputs_of(case))
    for grad_out in (time_first, time_first, plain, plain, time_first):
        grads = torch.autograd.grad(out, leaves, grad_out, retain_graph=True)
        for grad, want in zip(grads, wanted, strict=True):
            assert torch.equal(grad, want)
    # the operator itself takes a gradient of another dtype
    for grad, want in zip(
        torch.ops.talkconv.talk_conv_backward(plain.double(), *inputs_of(case)), wanted, strict=True
    ):
        assert torch.equal(grad, want)


def test_a_missing_side_is_like_one_of_zeros():
    case = make_case(r_max=0)
    want = talk_conv(case.x, case.left, torch.zeros_like(case.left), **case.settings)
    for _ in range(2):
        assert torch.equal(talk_conv(case.x, case.left, None, **case.settings), want)
    with pytest.raises(ValueError, match="right may be None only with r_max=0"):
        talk_conv(case.x, case.left, None, **{**case.settings, "r_max": 1})


@pytest.mark.parametrize("wrong", [True, 1.0])
def test_numbers_that_equal_an_int_are_refused(wrong):
    case = make_case(l_max=1)
    talk_conv(case.x, case.left, case.right, **case.settings)
    with pytest.raises(TypeError, match="l_max must be an int"):
        talk_conv(case.x, case.left, case.right, **{**case.settings, "l_max": wrong})


def test_errors_come_every_time():
    case = make_case(C=12, H=3)
    for _ in range(2):
        with pytest.raises(ValueError, match="must divide the channels"):
            talk_conv(case.x[..., :11].contiguous(), case.left, case.right, **case.settings)


def test_negated_and_zero_tensors_without_memory_of_their_own():
    case = make_case()
    want = talk_conv(-case.x, case.left, case.right, **case.settings)
    negated = torch._neg_view(case.x)
    assert negated.is_neg()
    assert torch.equal(talk_conv(negated, case.left, case.right, **case.settings), want)
    nothing = torch._efficientzerotensor(case.x.shape)
    out = talk_conv(nothing, case.left, case.right, **case.settings)
    assert torch.equal(out, torch.zeros_like(case.x))


def test_outputs_of_many_pages():
    # 48 MiB
    case = make_case(B=1, T=48 << 10, C=256, H=4, l_max=31, r_max=31)
    parts = [case.x[..., :64], case.left[..., :1], case.right[..., :1]]
    want = talk_conv(*(part.contiguous() for part in parts), **case.settings)
    for _ in range(3):
        out = talk_conv(case.x, case.left, case.right, **case.settings)
        assert torch.equal(out[..., :64], want)


@pytest.mark.skipif(library.find_kernel() is None, reason="there is no compiled kernel")
@pytest.mark.parametrize("direction", ["_forward", "_backward"])
def test_a_kernel_without_memory_raises_an_error(direction, monkeypatch):
    monkeypatch.setattr(library.find_kernel(), direction, lambda *packed: 1)
    case = make_case()
    with pytest.raises(MemoryError, match="no memory for the kernel's running sums"):
        talk_conv(case.x.requires_grad_(), case.left, case.right, **case.settings).sum().backward()
