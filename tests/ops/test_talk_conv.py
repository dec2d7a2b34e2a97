import math

import pytest
import torch

from talkconv import reference, talk_conv
from tests.cases import assert_exact, exact, exact_grads, make_case

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]

# T = 1, T < l_max, primes, one past a chunk of 512 tokens, R = 1, H = 1, one-sided, no window
SHAPES = [
    dict(B=1, T=1, C=1, H=1, l_max=0, r_max=0),
    dict(B=2, T=1, C=8, H=2, l_max=3, r_max=3),
    dict(B=3, T=5, C=6, H=6, l_max=31, r_max=17),
    dict(B=2, T=37, C=21, H=7, l_max=7, r_max=0),
    dict(B=2, T=37, C=70, H=1, l_max=0, r_max=5),
    dict(B=1, T=513, C=64, H=4, l_max=3, r_max=3),
    dict(B=1, T=1031, C=130, H=2, l_max=15, r_max=31),
    dict(B=2, T=67, C=192, H=2, l_max=1, r_max=2),
    dict(B=1, T=40, C=512, H=512, l_max=2, r_max=2),
]


def run(case, **settings):
    return talk_conv(case.x, case.left, case.right, **{**case.settings, **settings})


def run_with_grads(case, grad_out):
    leaves = case.leaves()
    out = talk_conv(*leaves, **case.settings)
    return out.detach(), torch.autograd.grad(out, leaves, grad_out)


def assert_gradients_exact(case):
    grad_out = torch.randn(case.x.shape, generator=torch.Generator().manual_seed(1)).to(case.x)
    _, grads = run_with_grads(case, grad_out)
    expected = exact_grads(case, grad_out)
    for name, actual, right_one in zip(("x", "left", "right"), grads, expected, strict=True):
        assert_exact(actual, right_one, f"grad_{name}")


def test_numbers_worked_out_by_hand(implementation):
    x = torch.arange(1.0, 6.0).view(1, 5, 1)
    half = torch.full_like(x, 0.5)
    out = 3 * talk_conv(x, half, half, l_max=1, r_max=1).flatten()
    torch.testing.assert_close(out, torch.tensor([2.0, 4.0, 6.0, 8.0, 7.0]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_the_definition(implementation, shape, dtype):
    case = make_case(**shape, dtype=dtype)
    assert_exact(run(case), exact(case))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_equal_the_definition(implementation, shape, dtype):
    assert_gradients_exact(make_case(**shape, dtype=dtype))


@pytest.mark.parametrize("max_offset", [0.4, 1.25, 3.0])
@pytest.mark.parametrize("normalize", [True, False])
def test_max_offset_and_normalize(implementation, max_offset, normalize):
    case = make_case(T=41, l_max=5, r_max=3, max_offset=max_offset, normalize=normalize)
    assert_exact(run(case), exact(case))
    assert_gradients_exact(case)


@pytest.mark.parametrize(
    ("dtype", "offset_dtype"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.bfloat16),
        (torch.float32, torch.float64),
        (torch.float64, torch.float16),
    ],
)
def test_offsets_in_another_dtype(implementation, dtype, offset_dtype):
    case = make_case(T=41, dtype=dtype, offset_dtype=offset_dtype)
    out = run(case)
    assert out.dtype == dtype
    assert_exact(out, exact(case))
    assert_gradients_exact(case)


def test_no_offset_at_all(implementation):
    """With max_offset=0, every window is the token itself."""
    case = make_case(max_offset=0.0, normalize=False)
    out, grads = run_with_grads(case, torch.ones_like(case.x))
    assert torch.equal(out, case.x)
    assert grads[0].eq(1).all()
    assert grads[1].eq(0).all()


@pytest.mark.parametrize("tokens", [37, 38, 513])
def test_windows_of_whole_tokens(implementation, tokens):
    """No token counts in part at their edges. Some windows have one such side only."""
    case = make_case(T=tokens, C=128, H=2, l_max=8, r_max=4)
    generator = torch.Generator().manual_seed(2)
    for side, reach in ((case.left, 8), (case.right, 4)):
        whole = torch.rand(side.shape, generator=generator) < 0.6
        side[whole] = (side * reach).round()[whole] / reach
    assert_exact(run(case), exact(case))
    grad_out = torch.randn(case.x.shape, generator=generator)
    _, (grad_x, *_) = run_with_grads(case, grad_out)
    assert_exact(grad_x, exact_grads(case, grad_out)[0], "grad_x")


def test_huge_tokens_do_not_change_windows_without_them(implementation):
    """Some of these windows begin right after a huge token or end right before it."""
    case = make_case(T=80, C=128, H=2, l_max=8, r_max=4)
    case.left[..., 0], case.right[..., 0] = 0.5, 0.25
    huge = [40, 51]
    case.x[:, huge] = 1e8
    weights = reference.window_weights(
        case.left.double(), case.right.double(), 80, l_max=8, r_max=4
    )
    holds_one = weights[:, :, huge].amax(2) > 0  # (B, T, H)
    out, expected = (y.unflatten(-1, (2, 64)) for y in (run(case), exact(case)))
    assert_exact(out[~holds_one], expected[~holds_one])
    assert holds_one.any(dim=1).all()


def test_lengths_end_sequences(implementation):
    lengths = torch.tensor([0, 1, 7, 13])
    case = make_case(B=4, lengths=lengths)
    assert_exact(run(case), exact(case))
    assert_gradients_exact(case)
    past = torch.arange(13) >= lengths[:, None]
    assert run(case)[past].eq(0).all()


def test_padding_is_never_read(implementation):
    lengths = torch.tensor([3, 9], dtype=torch.int32)
    case = make_case(lengths=lengths)
    clean = run(case)
    past = torch.arange(13) >= lengths[:, None]
    case.x[past] = torch.nan
    case.left[past] = torch.inf
    assert torch.equal(run(case), clean)
    _, grads = run_with_grads(case, torch.ones_like(case.x))
    assert all(grad[past].eq(0).all() and grad.isfinite().all() for grad in grads)


def test_packed_equals_the_definition(implementation):
    cu_seqlens = torch.tensor([0, 5, 5, 6, 40], dtype=torch.int32)
    case = make_case(T=40, cu_seqlens=cu_seqlens)
    assert_exact(run(case), exact(case))
    assert_gradients_exact(case)


def test_a_result_depends_on_its_own_sequence_only(implementation):
    """The bits are the same alone, in a batch, padded, and packed with others."""
    T = 700
    alone = make_case(B=1, T=T, C=96, H=3, l_max=9, r_max=6)
    grad_out = torch.randn_like(alone.x)
    out, grads = run_with_grads(alone, grad_out)
    expected = [out[0], *(grad[0] for grad in grads)]

    def beside(tensor, rows_before, rows_after):
        noise = torch.rand(rows_before + rows_after, tensor.shape[-1]).to(tensor)
        return torch.cat((noise[:rows_before], tensor[0], noise[rows_before:]))

    packed = make_case(T=T + 60, C=96, H=3, cu_seqlens=torch.tensor([0, 13, 13 + T, T + 60]))
    packed.settings.update(l_max=9, r_max=6)
    packed.x, packed.left, packed.right = (
        beside(tensor, 13, 47) for tensor in (alone.x, alone.left, alone.right)
    )
    out, grads = run_with_grads(packed, beside(grad_out, 13, 47))
    for actual, right_one in zip((out, *grads), expected, strict=True):
        assert torch.equal(actual[13 : 13 + T], right_one)

    padded = make_case(B=3, T=T + 60, C=96, H=3, lengths=torch.tensor([5, T, T + 60]))
    padded.settings.update(l_max=9, r_max=6)
    for name in ("x", "left", "right"):
        getattr(padded, name)[1] = beside(getattr(alone, name), 0, 60)
    padded_grad = torch.randn_like(padded.x)
    padded_grad[1] = beside(grad_out, 0, 60)
    out, grads = run_with_grads(padded, padded_grad)
    for actual, right_one in zip((out, *grads), expected, strict=True):
        assert torch.equal(actual[1, :T], right_one)


def test_bits_do_not_depend_on_threads(implementation):
    case = make_case(B=3, T=1500, C=160, H=5, l_max=15, r_max=15)
    grad_out = torch.randn_like(case.x)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        out, grads = run_with_grads(case, grad_out)
        for count in (2, 3, 7):
            torch.set_num_threads(count)
            again, grads_again = run_with_grads(case, grad_out)
            assert torch.equal(out, again)
            assert all(map(torch.equal, grads, grads_again))
    finally:
        torch.set_num_threads(threads)


def test_non_contiguous_inputs(implementation):
    case = make_case(B=2, T=13, C=12, H=3)
    expected = run(case)
    x = case.x.transpose(0, 1).contiguous().transpose(0, 1)
    both = torch.cat((case.left, case.right), dim=-1)
    left, right = both.chunk(2, dim=-1)
    assert torch.equal(talk_conv(x, left, right, **case.settings), expected)
    channels_last = case.x.transpose(1, 2).contiguous().transpose(1, 2)
    every_other = torch.stack((case.left, case.left), dim=-1)[..., 0]
    assert torch.equal(talk_conv(channels_last, every_other, case.right, **case.settings), expected)
    expanded = torch.tensor(0.5).expand(2, 13, 3)
    assert torch.equal(
        talk_conv(case.x, expanded, expanded, **case.settings),
        talk_conv(case.x, expanded.clone(), expanded.clone(), **case.settings),
    )


def test_expanded_gradient(implementation):
    case = make_case()
    leaves = case.leaves()
    grads = torch.autograd.grad(talk_conv(*leaves, **case.settings).sum(), leaves)
    _, expected = run_with_grads(case, torch.ones_like(case.x))
    assert all(map(torch.equal, grads, expected))


@pytest.mark.parametrize("shape", [(0, 5, 8), (2, 0, 8)])
def test_nothing_in_nothing_out(implementation, shape):
    x = torch.randn(shape, requires_grad=True)
    offsets = torch.rand(*shape[:2], 2, requires_grad=True)
    out = talk_conv(x, offsets, offsets, l_max=3, r_max=3)
    assert out.shape == shape
    out.sum().backward()
    assert x.grad.shape == shape
    packed = talk_conv(
        x.flatten(0, 1),
        offsets.flatten(0, 1),
        None,
        l_max=3,
        r_max=0,
        cu_seqlens=torch.tensor([0, 0, 0]),
    )
    assert packed.shape == (0, 8)


def test_a_side_without_reach_may_be_none(implementation):
    case = make_case(l_max=4, r_max=0)
    causal = talk_conv(case.x, case.left, None, **case.settings)
    assert torch.equal(causal, run(case))
    case = make_case(l_max=0, r_max=4)
    assert torch.equal(talk_conv(case.x, None, case.right, **case.settings), run(case))


def test_derivative_is_zero_at_an_integer_reach(implementation):
    x = torch.randn(1, 9, 4, dtype=torch.float64)
    offsets = torch.full((1, 9, 2), 0.5, dtype=torch.float64, requires_grad=True)
    talk_conv(x, offsets, offsets, l_max=4, r_max=2).sum().backward()
    assert offsets.grad.eq(0).all()


def test_clamped_offsets_have_no_gradient(implementation):
    x = torch.randn(1, 9, 4, dtype=torch.float64)
    values = torch.tensor([-0.3, 1.7]).double().expand(1, 9, 2)
    offsets = values.clone().requires_grad_()
    out = talk_conv(x, offsets, offsets, l_max=3, r_max=3, max_offset=1.25)
    expected = reference.talk_conv(x, values, values, l_max=3, r_max=3, max_offset=1.25)
    torch.testing.assert_close(out, expected)
    out.sum().backward()
    assert offsets.grad.eq(0).all()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e30, 1e30])
def test_wild_offsets_stay_with_their_token_and_head(implementation, value):
    case = make_case(B=2, T=40, C=12, H=3)
    calm, calm_grads = run_with_grads(case, torch.ones_like(case.x))
    case.left[0, 20, 1] = value
    out, grads = run_with_grads(case, torch.ones_like(case.x))
    elsewhere = torch.ones(2, 40, 12, dtype=torch.bool)
    elsewhere[0, 20, 4:8] = False
    assert torch.equal(out[elsewhere], calm[elsewhere])
    assert out[~elsewhere].isnan().all() == math.isnan(value)
    # gradients reach as far as the window of that token, and no other head
    within = torch.zeros(2, 40, 12, dtype=torch.bool)
    within[0, 15:25, 4:8] = True
    assert torch.equal(grads[0][~within], calm_grads[0][~within])
    assert grads[0][within].isnan().sum() == (4 if math.isnan(value) else 0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_special_values_stay_within_their_windows(implementation, dtype, value):
    """Plain running sums would carry them to later windows."""
    case = make_case(B=1, T=600, C=80, H=2, l_max=5, r_max=3, dtype=dtype)
    calm = exact(case)
    case.x[0, 100, 7] = value
    case.x[0, 590, 70] = value
    out = run(case)
    wide = case.doubles()
    weights = reference.window_weights(wide.left, wide.right, 600, l_max=5, r_max=3)
    reached = torch.zeros(600, 80, dtype=torch.bool)
    reached[:, 7] = weights[0, :, 100, 0] > 0
    reached[:, 70] = weights[0, :, 590, 1] > 0
    assert_exact(out[0][~reached], calm[0][~reached])
    special = torch.full_like(out[0][reached], value)
    assert torch.equal(out[0][reached].nan_to_num(7.0), special.nan_to_num(7.0))


@pytest.mark.parametrize("tokens", [1, 6, 7])
def test_an_infinity_at_the_end_stays_one(implementation, tokens):
    case = make_case(T=tokens, max_offset=0.0, normalize=False)
    case.x[:, -1] = math.inf
    assert torch.equal(run(case), case.x)


def test_infinities_of_both_signs_cancel_to_nan(implementation):
    case = make_case(B=1, T=40, C=4, H=1, l_max=5, r_max=5)
    case.x[0, 20, 1], case.x[0, 21, 1] = math.inf, -math.inf
    out = run(case)[0, :, 1]
    wide = case.doubles()
    weights = reference.window_weights(wide.left, wide.right, 40, l_max=5, r_max=5)[0, ..., 0]
    above, below = weights[:, 20] > 0, weights[:, 21] > 0
    assert (above & below).any()
    assert torch.equal(out.isnan(), above & below)
    assert torch.equal(out == math.inf, above & ~below)
    assert torch.equal(out == -math.inf, below & ~above)


def test_special_gradients_stay_within_their_windows(implementation):
    case = make_case(B=1, T=600, C=80, H=2, l_max=5, r_max=3)
    grad_out = torch.randn_like(case.x)
    _, calm = run_with_grads(case, grad_out)
    grad_out[0, 300, 7] = math.inf
    _, grads = run_with_grads(case, grad_out)
    touched = (grads[0] != calm[0]).nonzero()
    assert touched[:, 2].eq(7).all()
    assert touched[:, 1].min() >= 300 - 6
    assert touched[:, 1].max() <= 300 + 4
    assert grads[0][0, 300, 7] == math.inf


@pytest.mark.parametrize("tokens", [64, 20_000])
def test_error_does_not_grow_with_the_length(implementation, tokens):
    """It is at most 2e-6 at any length. `talkconv bench exactness` goes to a million tokens."""
    case = make_case(B=1, T=tokens, C=8, H=2, l_max=15, r_max=15)
    tail = max(0, tokens - 64)
    out = run(case)[:, tail + 15 :]
    wide = case.doubles()
    x, left, right = (tensor[:, tail:] for tensor in (wide.x, wide.left, wide.right))
    expected = reference.talk_conv(x, left, right, **case.settings)[:, 15:]
    if tail == 0:
        expected = reference.talk_conv(wide.x, wide.left, wide.right, **case.settings)[:, 15:]
    assert (out.double() - expected).abs().max() <= 2e-6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_random_shapes_equal_the_definition(implementation, seed):
    """This is the long grid, with random shapes, windows and dtypes."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low, high):
        return int(torch.randint(low, high + 1, (), generator=generator))

    H, R = draw(1, 9), draw(1, 90)
    case = make_case(
        B=draw(1, 4),
        T=draw(1, 900),
        C=H * R,
        H=H,
        l_max=draw(0, 70),
        r_max=draw(0, 70),
        dtype=DTYPES[draw(0, 3)],
        offset_dtype=DTYPES[draw(0, 3)],
        max_offset=(1.0, 1.5)[draw(0, 1)],
        seed=seed,
    )
    if draw(0, 1):
        lengths = torch.randint(0, case.x.shape[1] + 1, (case.x.shape[0],), generator=generator)
        case.settings["lengths"] = lengths
    assert_exact(run(case), exact(case))
    assert_gradients_exact(case)
