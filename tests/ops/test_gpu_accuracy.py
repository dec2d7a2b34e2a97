"""The error of the GPU kernels grows neither with the sequence nor with the window.

Sums are not normalized here, and all numbers have mean 1: results are as large as their windows,
and an error that grew with the window would show.
"""

import itertools

import pytest
import torch

from talkconv.ops import eager
from tests.cases import Case, exact, exact_grads, make_case
from tests.ops.gpu_runs import arguments, as_on_a_gpu, real_sizes, run_all, way

__all__ = ["as_on_a_gpu", "real_sizes", "way"]

pytestmark = pytest.mark.usefixtures("as_on_a_gpu")

# Two roundings of float32, as a share of the result.
MOST = 2**-23
# Products on tensor cores leave out what is below the last bit, and add tiles in float32.
MOST_OF_PRODUCTS = 4e-7

NAMES = ("out", "grad_x", "grad_left", "grad_right")
WINDOWS = [(3, 3), (31, 31), (127, 127), (2047, 2048)]


def long_case(T: int, windows: tuple[int, int]) -> tuple[Case, torch.Tensor]:
    """Return a sequence of one channel, and a gradient."""
    l_max, r_max = windows
    case = make_case(B=1, T=T, C=1, H=1, l_max=l_max, r_max=r_max, normalize=False)
    generator = torch.Generator().manual_seed(1)
    return case, 1 + torch.randn(case.x.shape, generator=generator)


def by_running_sums(case: Case, grad_out: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Compute the results in float64 by running sums: dense weights would not fit into memory."""
    wide = arguments(case.doubles())
    return eager.talk_conv(*wide), *eager.talk_conv_backward(grad_out.double(), *wide)


def errors(found, expected) -> dict[str, float]:
    """Return the largest error of each result, as a share of its size."""
    sizes = [1 + each.abs() for each in expected]
    pairs = zip(NAMES, found, expected, sizes, strict=True)
    return {name: ((a.double() - b).abs() / size).max().item() for name, a, b, size in pairs}


def assert_small(found: dict[str, float], way: str) -> None:
    for name, error in found.items():
        most = MOST_OF_PRODUCTS if (name, way) == ("grad_x", "products") else MOST
        assert error <= most, f"{name} is off by {error:.2g} of its size, allowed {most:.2g}"


def test_running_sums_in_float64_are_exact_enough():
    case, grad_out = long_case(200, (127, 127))
    expected = (exact(case), *exact_grads(case, grad_out))
    assert max(errors(by_running_sums(case, grad_out), expected).values()) < 1e-12


@pytest.mark.parametrize(
    ("T", "windows", "way"),
    [
        (64, (3, 3), "products"),
        (140, (2047, 2048), "events"),
        pytest.param(64, (127, 127), "events", marks=pytest.mark.slow),
        pytest.param(140, (3, 3), "events", marks=pytest.mark.slow),
    ],
    indirect=["way"],
)
def test_the_error_does_not_grow(T, windows, way):
    case, grad_out = long_case(T, windows)
    found = run_all(case, grad_out)
    assert_small(errors(found, by_running_sums(case, grad_out)), way)


@pytest.mark.slow
@pytest.mark.usefixtures("real_sizes")
@pytest.mark.parametrize("windows", WINDOWS, ids=str)
@pytest.mark.parametrize("T", [64, 1024, 4096, 16_384])
def test_the_error_does_not_grow_up_to_16_384_tokens(T, windows):
    case, grad_out = long_case(T, windows)
    way = "products" if sum(windows) < 64 else "events"
    assert_small(errors(run_all(case, grad_out), by_running_sums(case, grad_out)), way)


@pytest.mark.slow
@pytest.mark.usefixtures("real_sizes")
@pytest.mark.parametrize("reach", [255, 1023])
def test_long_windows_on_tensor_cores(reach, way):
    """Tensor cores round toward zero: a sum from tile to tile would drift with the window."""
    case, grad_out = long_case(reach + 80, (reach, reach))
    assert_small(errors(run_all(case, grad_out), by_running_sums(case, grad_out)), way)


@pytest.mark.usefixtures("real_sizes")
@pytest.mark.parametrize(
    ("T", "windows"),
    [
        (140, (127, 127)),
        *(
            pytest.param(T, windows, marks=pytest.mark.slow)
            for T, windows in itertools.product([64, 1024], WINDOWS)
        ),
    ],
    ids=str,
)
def test_a_long_sequence_has_the_same_bits_everywhere(T, windows):
    """Compare a sequence alone, in a padded batch, and packed between two others."""
    case, grad_out = long_case(T, windows)
    alone = run_all(case, grad_out)
    noise, noise_grad = long_case(T + 9, windows)

    def beside(values, others):
        batch = others.repeat(2, 1, 1)
        batch[1, :T] = values[0]
        return batch

    def between(values, others):
        return torch.cat((others[0, :5], values[0], others[0, 5:]))

    tensors = [(getattr(case, name), getattr(noise, name)) for name in ("x", "left", "right")]
    lengths = dict(case.settings, lengths=torch.tensor([T // 2, T]))
    padded = Case(*(beside(*pair) for pair in tensors), lengths)
    for one, other in zip(alone, run_all(padded, beside(grad_out, noise_grad)), strict=True):
        assert torch.equal(one[0], other[1, :T])
    ends = dict(case.settings, cu_seqlens=torch.tensor([0, 5, 5 + T, 2 * T + 9]))
    packed = Case(*(between(*pair) for pair in tensors), ends)
    for one, other in zip(alone, run_all(packed, between(grad_out, noise_grad)), strict=True):
        assert torch.equal(one[0], other[5 : 5 + T])
