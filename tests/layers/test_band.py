import pytest
import torch

from talkconv.layers.band import BLOCK, convolve


def shifted_sums(stream, kernels):
    """Compute the definition: one shifted copy of the stream for each weight."""
    H, K = kernels.shape[-2:]
    T = stream.shape[1] - K + 1
    heads = stream.unflatten(-1, (H, -1))
    return sum(kernels[..., k, None] * heads[:, k : k + T] for k in range(K)).flatten(-2)


# one token, a whole block, one past it, kernels wider than a block and than the sequence
@pytest.mark.parametrize("T", [1, 5, BLOCK, BLOCK + 1, 3 * BLOCK - 1])
@pytest.mark.parametrize("K", [1, 2, 7, BLOCK, BLOCK + 3, 97])
@pytest.mark.parametrize("per_token", [False, True])
def test_equals_shifted_sums(T, K, per_token):
    torch.manual_seed(0)
    B, H = 2, 3
    stream = torch.randn(B, T + K - 1, 6, dtype=torch.float64, requires_grad=True)
    shape = (B, T, H, K) if per_token else (H, K)
    kernels = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    out, expected = convolve(stream, kernels), shifted_sums(stream, kernels)
    torch.testing.assert_close(out, expected)
    weights = torch.randn_like(out)
    for actual, right in zip(
        torch.autograd.grad(out, (stream, kernels), weights),
        torch.autograd.grad(expected, (stream, kernels), weights),
        strict=True,
    ):
        torch.testing.assert_close(actual, right)


@pytest.mark.parametrize("T", [1, BLOCK, 3 * BLOCK - 1])
@pytest.mark.parametrize(("before", "after"), [(0, 6), (6, 0), (3, 3)])
def test_tokens_around_are_zeros(T, before, after):
    torch.manual_seed(0)
    x, kernels = torch.randn(2, T, 6), torch.randn(2, T, 3, 7)
    around = torch.nn.functional.pad(x, (0, 0, before, after))
    out = convolve(x, kernels, before=before, after=after)
    torch.testing.assert_close(out, shifted_sums(around, kernels))


def test_memory_is_linear_in_the_length():
    def saved_bytes(T):
        saved = []
        stream = torch.randn(1, T + 6, 8, requires_grad=True)
        kernels = torch.randn(1, T, 2, 7, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: saved.append(tensor.nbytes) or tensor, lambda tensor: tensor
        ):
            convolve(stream, kernels)
        return sum(saved)

    assert saved_bytes(4096) == pytest.approx(4 * saved_bytes(1024), rel=0.01)
