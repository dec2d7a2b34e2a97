"""Tests dropout by the compiled kernel: its distribution, its derivatives and its repetition."""

import pytest
import torch
from torch.autograd import forward_ad

from talkconv.ops import cpu, library
from talkconv.ops.dropout import dropout

N = 200_000
needs_kernel = pytest.mark.skipif(library.find_kernel() is None, reason="the kernel draws here")
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_elements_are_dropped_with_their_probability(implementation, p):
    out = dropout(torch.ones(N), p)
    kept = out != 0
    # five standard deviations of a binomial distribution
    assert abs(kept.double().mean() - (1 - p)) < 5 * (p * (1 - p) / N) ** 0.5
    torch.testing.assert_close(out[kept], torch.full((int(kept.sum()),), 1 / (1 - p)))


def test_neighbours_and_calls_are_independent(implementation):
    dropped = torch.stack([dropout(torch.ones(N), 0.5) == 0 for _ in range(3)]).double() - 0.5
    bound = 5 * 0.25 / N**0.5
    for distance in (1, 2, 8, 4096):
        assert (dropped[0, distance:] * dropped[0, :-distance]).mean().abs() < bound
    assert (dropped[0] * dropped[1]).mean().abs() < bound
    assert (dropped[1] * dropped[2]).mean().abs() < bound


def test_nothing_happens_in_evaluation_or_without_a_probability():
    x = torch.randn(5)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0) is x
    assert not dropout(x, 1.0).any()


@needs_kernel
def test_torchs_generator_decides_alone():
    x = torch.ones(50_000)
    outs = []
    for threads in (1, 3):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            torch.manual_seed(7)
            outs.append(dropout(x, 0.4))
        finally:
            torch.set_num_threads(before)
    assert torch.equal(*outs)
    assert not torch.equal(dropout(x, 0.4), outs[0])


@needs_kernel
def test_all_instruction_sets_draw_the_same():
    kernel = library.find_kernel()
    best = kernel.isa
    outs = []
    try:
        for isa in kernel.available_isas():
            kernel.isa = isa
            outs.append(cpu.dropout(torch.ones(9_001), 0.3, seed=5))
    finally:
        kernel.isa = best
    assert all(torch.equal(out, outs[0]) for out in outs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(implementation, dtype):
    x = torch.randn(3, 1_001).to(dtype)
    out = dropout(x, 0.25)
    assert out.dtype == dtype
    kept = out != 0
    torch.testing.assert_close(out[kept], (x[kept].double() / 0.75).to(dtype))


def test_views_of_any_stride(implementation):
    x = torch.randn(40, 30).t()
    out = dropout(x, 0.5)
    assert out.shape == (30, 40)
    kept = out != 0
    torch.testing.assert_close(out[kept], 2 * x[kept])
    assert dropout(torch.empty(0, 3), 0.5).shape == (0, 3)


def test_the_gradient_falls_on_what_was_kept(implementation):
    x = torch.randn(20, 30, requires_grad=True)
    out = dropout(x, 0.3)
    (grad,) = torch.autograd.grad(out.sum(), x)
    kept = out != 0
    assert torch.equal(grad != 0, kept)
    torch.testing.assert_close(grad[kept], torch.full_like(grad[kept], 1 / 0.7))


def test_no_mask_is_stored():
    x = torch.randn(1_000, requires_grad=True)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t), lambda t: t):
        dropout(x, 0.5)
    assert (saved == []) == (library.find_kernel() is not None)


def repeated(x):
    """Return one dropout as a function, which drops the same elements in each call."""
    torch.manual_seed(3)
    return dropout(x, 0.4)


def test_derivatives_of_every_order_and_direction(implementation):
    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    checks = dict(check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradcheck(repeated, x, **checks)
    assert torch.autograd.gradgradcheck(lambda x: repeated(x) ** 3, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_batch_of_gradients_is_as_exact_as_one(implementation, dtype):
    """It is computed with a mask, which must have the dtype of the gradients."""
    x = torch.ones(30, dtype=dtype, requires_grad=True)
    out = repeated(x)
    many = torch.randn(2, 30).to(dtype)
    (batched,) = torch.autograd.grad(out, x, many, is_grads_batched=True, retain_graph=True)
    for grad_out, found in zip(many, batched, strict=True):
        (alone,) = torch.autograd.grad(out, x, grad_out, retain_graph=True)
        torch.testing.assert_close(found, alone, rtol=2 * torch.finfo(dtype).eps, atol=0)


@needs_kernel
def test_tangents_are_dropped_alike():
    x, tangent = torch.ones(2, 100)
    with forward_ad.dual_level():
        out, moved = forward_ad.unpack_dual(dropout(forward_ad.make_dual(x, tangent), 0.5))
    assert torch.equal(out, moved)


def test_transforms_and_compilers_are_left_to_torch():
    x = torch.ones(6, 50)
    per_sample = torch.vmap(lambda one: dropout(one, 0.5), randomness="different")(x)
    assert per_sample.shape == x.shape
    assert torch.func.grad(lambda x: dropout(x, 0.5).sum())(x).unique().tolist() == [0, 2]
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: dropout(x, 0.5), fullgraph=True, backend="aot_eager")
    assert compiled(x).unique().tolist() == [0, 2]
