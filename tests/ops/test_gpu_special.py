"""NaN, infinities and the largest numbers stay within the windows that hold them, on a GPU too."""

import pytest
import torch

from talkconv import reference
from tests.cases import assert_exact, exact, exact_grads, make_case
from tests.ops.gpu_runs import (
    WAYS,
    as_on_a_gpu,
    combinations,
    random_grad,
    run,
    run_all,
    run_backward,
    way,
)

__all__ = ["as_on_a_gpu", "way"]

pytestmark = [
    pytest.mark.usefixtures("as_on_a_gpu"),
    # NaN and infinity are meant; numpy, which does the interpreter's sums, warns about them
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
FAST = [torch.float32, torch.bfloat16]


@pytest.mark.parametrize(
    ("side", "dtype", "way"),
    [
        *combinations(
            [("left", torch.float32, "products"), ("right", torch.float32, "events")],
            ["left", "right"],
            [torch.float32],
            WAYS,
        ),
        # float64 has one way, and sums every token directly
        *(
            pytest.param(side, torch.float64, "products", marks=pytest.mark.slow)
            for side in ("left", "right")
        ),
    ],
    indirect=["way"],
)
def test_nan_offset_takes_its_own_token_only(side, dtype, way):
    T = 10 if dtype == torch.float64 else 18
    case = make_case(B=1, T=T, C=4, H=2, dtype=dtype)
    grad_out = random_grad(case)
    clean = run_all(case, grad_out)
    getattr(case, side)[0, T - 2, 1] = torch.nan
    out, *grads = run_all(case, grad_out)
    is_nan = torch.zeros(1, T, 4, dtype=torch.bool)
    is_nan[0, T - 2, 2:] = True
    assert torch.equal(out.isnan(), is_nan)
    assert torch.equal(out[~is_nan], clean[0][~is_nan])
    assert torch.equal(grads[0].isnan(), is_nan)
    for grad, clean_grad in zip(grads[1:], clean[2:], strict=True):
        assert torch.equal(grad.isnan(), is_nan[..., 1::2])
        assert torch.equal(grad[~is_nan[..., 1::2]], clean_grad[~is_nan[..., 1::2]])


def summed_by_weights(weights, values):
    """Sum values by weights (..., T), adding only those that have a weight: 0 * NaN is NaN."""
    terms = torch.where(weights != 0, weights * values.double(), 0)
    return terms.sum(1)


def assert_equal_with_specials(found, expected):
    finite = expected.isfinite()
    assert_exact(torch.where(finite, found, 0), torch.where(finite, expected, 0))
    assert torch.equal(found[~finite].double().nan_to_num(), expected[~finite].nan_to_num())
    assert torch.equal(found.isnan(), expected.isnan())


SPECIALS = {
    "nan": [torch.nan],
    "inf": [torch.inf],
    "-inf": [-torch.inf],
    "both": [torch.inf, -torch.inf],
}


@pytest.mark.parametrize(
    ("specials", "dtype", "way"),
    [
        *combinations(
            [
                ("nan", torch.float32, "products"),
                ("inf", torch.bfloat16, "events"),
                ("-inf", torch.bfloat16, "products"),
                ("both", torch.float32, "events"),
            ],
            SPECIALS,
            FAST,
            WAYS,
        ),
        ("both", torch.float64, "products"),
        *(
            pytest.param(name, torch.float64, "products", marks=pytest.mark.slow)
            for name in ("nan", "inf", "-inf")
        ),
    ],
    indirect=["way"],
)
def test_specials_reach_the_windows_that_hold_them(specials, dtype, way):
    T = 13 if dtype == torch.float64 else 18
    case = make_case(B=1, T=T, C=2, H=1, dtype=dtype)
    grad_out = random_grad(case)
    for token, special in enumerate(SPECIALS[specials], start=8):
        case.x[0, token, 1] = special
        grad_out[0, token, 1] = special
    wide = case.doubles()
    weights = reference.window_weights(wide.left, wide.right, T, l_max=4, r_max=3)[0]  # (T, T, 1)
    assert_equal_with_specials(run(case)[0], summed_by_weights(weights, case.x[0]) / 8)
    grad_x = run_backward(case, grad_out)[0]
    expected = summed_by_weights(weights.transpose(0, 1), grad_out[0]) / 8
    assert_equal_with_specials(grad_x[0], expected)


@pytest.mark.parametrize(
    ("dtype", "way"),
    [
        *combinations(
            [
                (torch.float32, "products"),
                (torch.bfloat16, "events"),
                (torch.float16, "products"),
            ],
            [*FAST, torch.float16],
            WAYS,
        ),
        (torch.float64, "products"),
    ],
    indirect=["way"],
)
def test_the_largest_numbers_change_their_own_windows_only(dtype, way):
    """One bfloat16 piece of the largest float32 is infinite, and 0 * infinity is NaN."""
    case = make_case(B=1, T=24, C=4, H=1, l_max=3, r_max=3, dtype=dtype)
    largest = torch.finfo(dtype).max
    grad_out = random_grad(case)
    for values in (case.x, grad_out):
        values[0, 5, 3] = values[0, -2, 1] = largest
        values[0, 16, 3] = -largest
        # the mean of two such numbers fits into their dtype, but their sum does not
        values[0, 20:22, 0] = largest if dtype != torch.float64 else 1
    assert_exact(run(case), exact(case))
    grads = run_backward(case, grad_out)
    assert_exact(grads[0], exact_grads(case, grad_out)[0])


@pytest.mark.parametrize(
    ("size", "way"),
    combinations([(2.0**16, "events"), (2.0**30, "products")], [2.0**16, 2.0**30], WAYS),
    indirect=["way"],
)
def test_a_large_element_takes_no_accuracy_from_windows_without_it(size, way):
    case = make_case(B=1, T=24, C=2, H=1)
    grad_out = random_grad(case)
    case.x[0, 12] = grad_out[0, 12] = size
    assert_exact(run(case), exact(case))
    assert_exact(run_backward(case, grad_out)[0], exact_grads(case, grad_out)[0])
