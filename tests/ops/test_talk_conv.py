import pytest
import torch

from talkconv import talk_conv
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
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_the_definition(implementation, shape, dtype):
    case = make_case(**shape, dtype=dtype)
    assert_exact(talk_conv(case.x, case.left, case.right, **case.settings), exact(case))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_equal_the_definition(implementation, shape, dtype):
    case = make_case(**shape, dtype=dtype)
    leaves = case.leaves()
    out = talk_conv(*leaves, **case.settings)
    grad_out = torch.randn_like(out)
    expected = exact_grads(case, grad_out)
    for name, actual, right_one in zip(
        ("grad_x", "grad_left", "grad_right"),
        torch.autograd.grad(out, leaves, grad_out),
        expected,
        strict=True,
    ):
        assert_exact(actual, right_one, name)
