import pytest
import torch

from talkconv import TaLKState, talk_conv, talk_conv_step
from tests.cases import make_case


def stream(case, sizes, state=None, **empty):
    """Compute all tokens of the case, in steps of the given sizes."""
    B, _, C = case.x.shape
    settings = {k: case.settings[k] for k in ("l_max", "max_offset")}
    state = state or TaLKState.empty(B, C, **settings, dtype=case.x.dtype, **empty)
    outs = []
    for x, left in zip(case.x.split(sizes, 1), case.left.split(sizes, 1), strict=True):
        out, state = talk_conv_step(x, left, state)
        outs.append(out)
    return torch.cat(outs, 1), state


def whole(case):
    return talk_conv(case.x, case.left, None, **case.settings)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("sizes", [[1] * 13, [13], [4, 1, 8], [2, 11]])
@pytest.mark.parametrize("l_max", [0, 4, 40])
@pytest.mark.parametrize("max_offset", [1.0, 1.25])
def test_steps_equal_all_at_once(implementation, sizes, l_max, max_offset, dtype):
    case = make_case(r_max=0, l_max=l_max, max_offset=max_offset, dtype=dtype)
    out, state = stream(case, sizes)
    torch.testing.assert_close(out, whole(case))
    assert state.seen == 13
    assert state.tokens.shape[1] == -(-l_max * max_offset // 1)


def test_a_hundred_thousand_tokens():
    """The error does not grow, and neither does the memory."""
    case = make_case(B=1, T=100_000, C=4, H=2, l_max=15, r_max=0)
    out, state = stream(case, [1000] * 98 + [1] * 2000)
    torch.testing.assert_close(out, whole(case), rtol=1e-6, atol=1e-6)
    assert state.tokens.shape == (1, 15, 4)
    assert state.tokens.untyped_storage().nbytes() <= 2 * 16 * 4 * 4


def test_a_step_leaves_the_old_state_alone():
    case = make_case(r_max=0)
    before = TaLKState.empty(2, 12, l_max=4)
    first, _ = stream(case, [5, 8], before)
    again, _ = stream(case, [5, 8], before)
    assert torch.equal(first, again)
    assert before.tokens.eq(0).all()


def test_reorder_follows_the_beams(implementation):
    case = make_case(B=3, r_max=0)
    _, state = stream(case, [13])
    index = torch.tensor([2, 0, 0, 1])
    step = make_case(B=4, T=2, r_max=0, seed=1)
    out, _ = talk_conv_step(step.x, step.left, state.reorder(index))
    long_x = torch.cat((case.x[index], step.x), 1)
    long_left = torch.cat((case.left[index], step.left), 1)
    expected = talk_conv(long_x, long_left, None, **case.settings)[:, 13:]
    torch.testing.assert_close(out, expected)


def test_repeat_opens_beams():
    case = make_case(B=2, r_max=0)
    _, state = stream(case, [13])
    assert torch.equal(state.repeat(3).tokens, state.tokens[[0, 0, 0, 1, 1, 1]])
    assert torch.equal(state.repeat(1).tokens, state.tokens)


def test_crop_takes_tokens_back():
    case = make_case(r_max=0)
    expected, _ = stream(case, [13])
    _, state = stream(case, [13], rollback=4)
    state = state.crop(3)
    assert state.seen == 10
    out, state = talk_conv_step(case.x[:, 10:], case.left[:, 10:], state)
    torch.testing.assert_close(out, expected[:, 10:])
    # the room to roll back is there again
    out, _ = talk_conv_step(case.x[:, 9:], case.left[:, 9:], state.crop(4))
    torch.testing.assert_close(out, expected[:, 9:])


def test_crop_beyond_what_is_kept_is_an_error():
    case = make_case(r_max=0)
    _, state = stream(case, [13], rollback=2)
    with pytest.raises(ValueError, match=r"0 .. 2 tokens .* got 3; make the state with a larger"):
        state.crop(3)
    with pytest.raises(ValueError, match=r"0 .. 0 tokens"):
        TaLKState.empty(1, 4, l_max=2, rollback=5).crop(1)


def test_gradients_flow_through_steps(implementation):
    case = make_case(r_max=0, dtype=torch.float64)
    x, left, _ = case.leaves()
    state = TaLKState.empty(2, 12, l_max=4, dtype=torch.float64)
    one, state = talk_conv_step(x[:, :6], left[:, :6], state)
    two, _ = talk_conv_step(x[:, 6:], left[:, 6:], state)
    grads = torch.autograd.grad(torch.cat((one, two), 1).square().sum(), (x, left))
    expected = torch.autograd.grad(
        talk_conv(x, left, None, **case.settings).square().sum(), (x, left)
    )
    torch.testing.assert_close(grads, expected)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (dict(x=torch.randn(3, 1, 12)), ValueError, "must be"),
        (dict(x=torch.randn(2, 0, 12), left=torch.rand(2, 0, 3)), ValueError, "at least one token"),
        (dict(x=torch.randn(2, 1, 24)), ValueError, r"of the state, got \(2, 1, 24\)"),
        (dict(x=torch.randn(2, 1, 12).double()), TypeError, "dtype of the state"),
        (
            dict(state=TaLKState.empty(2, 12, l_max=4, device="meta")),
            ValueError,
            "x must be on the device of the state, meta, got cpu",
        ),
        (dict(state=None), TypeError, "TaLKState.empty"),
    ],
)
def test_mistakes_are_named(change, error, message):
    good = dict(
        x=torch.randn(2, 1, 12), left=torch.rand(2, 1, 3), state=TaLKState.empty(2, 12, l_max=4)
    )
    with pytest.raises(error, match=message):
        talk_conv_step(**{**good, **change})


def test_a_state_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="channels=0"):
        TaLKState.empty(1, 0, l_max=3)
    with pytest.raises(TypeError, match="dtype"):
        TaLKState.empty(1, 4, l_max=3, dtype=torch.int64)
    with pytest.raises(ValueError, match="batch=-1"):
        TaLKState.empty(-1, 4, l_max=3)
    with pytest.raises(ValueError, match="rollback must lie in"):
        TaLKState.empty(1, 4, l_max=3, rollback=-1)


def test_a_step_of_an_empty_batch():
    state = TaLKState.empty(0, 12, l_max=4)
    out, state = talk_conv_step(torch.randn(0, 2, 12), torch.rand(0, 2, 3), state)
    assert out.shape == (0, 2, 12)
    assert state.seen == 2


@pytest.mark.parametrize("wants_gradient", [False, True])
def test_sums_of_steps_can_be_left_without_normalization(implementation, wants_gradient):
    case = make_case(r_max=0)
    x = case.x.requires_grad_(wants_gradient)
    state = TaLKState.empty(2, 12, l_max=4)
    out, _ = talk_conv_step(x, case.left, state, normalize=False)
    torch.testing.assert_close(out, 5 * whole(case))


def test_crop_of_nothing_changes_nothing():
    case = make_case(r_max=0)
    _, state = stream(case, [13], rollback=2)
    same = state.crop(0)
    assert same.seen == 13
    assert torch.equal(same.tokens, state.tokens)
    with pytest.raises(ValueError, match=r"got -1"):
        state.crop(-1)
