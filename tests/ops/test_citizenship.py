"""Tests the operator with PyTorch's tools: opcheck, compile, export, autocast, vmap, autograd."""

import pytest
import torch

from talkconv import TaLKState, talk_conv, talk_conv_step
from talkconv.ops import eager
from tests.cases import make_case

OPERATOR = torch.ops.talkconv.talk_conv.default
BACKWARD = torch.ops.talkconv.talk_conv_backward.default


def samples(T=13, **size):
    size = dict(T=T, dtype=torch.float64, **size)
    ends = torch.tensor([0, 3, T])
    yield make_case(**size), (None, None)
    yield make_case(**size, r_max=0), (None, None)
    yield make_case(**size), (torch.tensor([3, T]), None)
    yield make_case(**size, cu_seqlens=ends), (None, ends)


# what is checked is how the operators are registered, which is the same for every implementation
@pytest.mark.parametrize("index", range(4))
def test_opcheck(index):
    case, (lengths, cu_seqlens) = list(samples())[index]
    settings = (case.settings["l_max"], case.settings["r_max"], 1.0, True, lengths, cu_seqlens)
    torch.library.opcheck(OPERATOR, (*case.leaves(), *settings))
    grad_out = torch.randn_like(case.x)
    torch.library.opcheck(BACKWARD, (grad_out.requires_grad_(), *case.leaves(), *settings))


def test_opcheck_step():
    window = torch.randn(2, 6, 4, dtype=torch.float64, requires_grad=True)
    left = torch.rand(2, 2, 2, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(torch.ops.talkconv.talk_conv_step.default, (window, left, 4, 1.0, True))


@pytest.mark.parametrize("index", range(4))
def test_first_and_second_derivatives(implementation, index):
    case, (lengths, cu_seqlens) = list(samples(T=5, C=4, H=2))[index]
    settings = {**case.settings, "lengths": lengths, "cu_seqlens": cu_seqlens}

    def function(*tensors):
        return talk_conv(*tensors, **settings)

    packed = cu_seqlens is not None  # vmap does not take these
    batched = dict(check_batched_grad=not packed)
    forward = dict(check_forward_ad=True, check_batched_forward_grad=not packed)
    assert torch.autograd.gradcheck(function, case.leaves(), **forward, **batched)
    assert torch.autograd.gradgradcheck(function, case.leaves(), check_fwd_over_rev=True, **batched)


def test_third_derivatives_exist():
    case = make_case(T=6, C=4, H=2, dtype=torch.float64)
    x, left, right = case.leaves()
    out = talk_conv(x, left, right, **case.settings)
    (first,) = torch.autograd.grad((out**3).sum(), left, create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum(), left, create_graph=True)
    (third,) = torch.autograd.grad((second**2).sum(), left)
    assert third.isfinite().all()
    assert third.abs().sum() > 0


def test_compile_without_graph_breaks(implementation):
    case = make_case(T=21)
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def network(x, left, right):
        return talk_conv(x * 2, left, right, **case.settings).square()

    leaves = case.leaves()
    expected = talk_conv(leaves[0] * 2, leaves[1], leaves[2], **case.settings).square()
    actual = network(*leaves)
    torch.testing.assert_close(actual, expected)
    actual_grads = torch.autograd.grad(actual.sum(), leaves)
    expected_grads = torch.autograd.grad(expected.sum(), leaves)
    torch.testing.assert_close(actual_grads, expected_grads)


def test_compile_with_lengths_and_a_changing_length():
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, backend="aot_eager", dynamic=True)
    def network(x, left, right, lengths):
        return talk_conv(x, left, right, l_max=4, r_max=3, lengths=lengths)

    for T in (5, 13, 21):
        case = make_case(T=T)
        lengths = torch.tensor([T - 2, T])
        expected = talk_conv(case.x, case.left, case.right, l_max=4, r_max=3, lengths=lengths)
        assert torch.equal(network(case.x, case.left, case.right, lengths), expected)


class Layer(torch.nn.Module):
    def forward(self, x, left, right):
        return talk_conv(x, left, right, l_max=4, r_max=3)


def test_export_with_a_dynamic_length():
    case = make_case(T=9)
    inputs = (case.x, case.left, case.right)
    T = torch.export.Dim("T", min=2)
    exported = torch.export.export(Layer(), inputs, dynamic_shapes=[{1: T}] * 3)
    assert "talkconv.talk_conv" in str(exported.graph)
    other = make_case(T=17)
    inputs = (other.x, other.left, other.right)
    assert torch.equal(exported.module()(*inputs), Layer()(*inputs))


def test_export_decomposes_into_standard_operations():
    """An exporter that does not know our operator needs this."""
    case = make_case(T=9)
    inputs = (case.x, case.left, case.right)
    exported = torch.export.export(Layer(), inputs)
    standard = exported.run_decompositions({OPERATOR: eager.talk_conv})
    assert "talkconv" not in str(standard.graph)
    torch.testing.assert_close(standard.module()(*inputs), Layer()(*inputs))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")  # shapes are checked only now
def test_a_trace_holds_the_operator_and_not_its_result():
    one, two = make_case(T=9, seed=1, r_max=0), make_case(T=9, seed=2, r_max=0)

    def step(x, left):
        return talk_conv_step(x, left, TaLKState.empty(2, 12, l_max=4))[0]

    def whole(x, left):
        return talk_conv(x, left, left, l_max=4, r_max=2)

    for function in (step, whole):
        function(one.x, one.left)  # known from now on
        traced = torch.jit.trace(function, (one.x, one.left))
        assert torch.equal(traced(two.x, two.left), function(two.x, two.left))


def test_autocast_keeps_float32_offsets(implementation):
    """As in a network, x comes in bfloat16 from a projection, and the offsets in float32."""
    case = make_case(T=21)
    leaf = case.x.clone().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = leaf.to(torch.bfloat16)
        out = talk_conv(x, case.left, case.right, **case.settings)
    assert out.dtype == torch.bfloat16
    out.float().sum().backward()
    assert leaf.grad.isfinite().all()


def test_vmap_over_any_argument(implementation):
    cases = [make_case(seed=seed) for seed in range(3)]
    x, left, right = (torch.stack([getattr(c, n) for c in cases]) for n in ("x", "left", "right"))

    def function(x, left, right):
        return talk_conv(x, left, right, **cases[0].settings)

    expected = torch.stack([function(*args) for args in zip(x, left, right, strict=True)])
    assert torch.equal(torch.vmap(function)(x, left, right), expected)
    expected = torch.stack([function(one, left[0], right[0]) for one in x])
    mapped = torch.vmap(function, in_dims=(2, None, None))
    assert torch.equal(mapped(x.movedim(0, 2), left[0], right[0]), expected)


def test_vmap_over_packed_sequences_is_a_clear_error():
    x, left = torch.randn(2, 5, 4), torch.rand(2, 5, 2)
    ends = torch.tensor([0, 2, 5])

    def function(x, left):
        return talk_conv(x, left, None, l_max=2, r_max=0, cu_seqlens=ends)

    with pytest.raises(NotImplementedError, match="lengths instead"):
        torch.vmap(function)(x, left)


def test_no_gradient_is_recorded_where_none_is_wanted():
    case = make_case()
    x, left, right = case.leaves()
    with torch.no_grad():
        assert not talk_conv(x, left, right, **case.settings).requires_grad
    assert talk_conv(x, left.detach(), right.detach(), **case.settings).requires_grad
    with torch.inference_mode():
        assert talk_conv(case.x, case.left, case.right, **case.settings).is_inference()


def test_steps_compile():
    torch._dynamo.reset()
    state = TaLKState.empty(2, 12, l_max=4)
    case = make_case(T=3, r_max=0)
    compiled = torch.compile(talk_conv_step, fullgraph=True, backend="aot_eager")
    out, after = compiled(case.x, case.left, state)
    expected, expected_after = talk_conv_step(case.x, case.left, state)
    assert torch.equal(out, expected)
    assert torch.equal(after.tokens, expected_after.tokens)
