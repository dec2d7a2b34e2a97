import pytest
import torch
import torch.nn.functional as F

from talkconv.layers import attend as module
from talkconv.layers.attend import attend


@pytest.fixture
def inputs():
    torch.manual_seed(0)
    return tuple(torch.randn(2, 3, T, 4, dtype=torch.float64) for T in (5, 7, 7))


MASK = torch.arange(7) < torch.tensor([4, 7])[:, None, None, None]


@pytest.mark.parametrize("mask", [None, MASK])
def test_written_out_it_equals_the_fused_attention(inputs, mask, monkeypatch):
    monkeypatch.setattr(module, "dropout", lambda weights, p: weights)
    fused = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    torch.testing.assert_close(attend(*inputs, mask=mask, dropout_p=0.5), fused)


def test_causal(inputs, monkeypatch):
    monkeypatch.setattr(module, "dropout", lambda weights, p: weights)
    square = (inputs[1], *inputs[1:])
    fused = F.scaled_dot_product_attention(*square, is_causal=True)
    torch.testing.assert_close(attend(*square, is_causal=True, dropout_p=0.5), fused)


def test_weights_are_dropped_and_scaled(inputs):
    queries, keys, _ = inputs
    # the output is the sum of the weights that were kept, twice each
    values = torch.ones(2, 3, 7, 1, dtype=torch.float64)
    torch.manual_seed(1)
    sums = torch.stack([attend(queries, keys, values, dropout_p=0.5) for _ in range(200)])
    assert sums.std() > 0.1
    assert abs(sums.mean() - 1) < 0.05


def test_a_query_that_may_look_nowhere_stays_finite(inputs):
    mask = torch.zeros(2, 1, 1, 7, dtype=torch.bool)
    assert attend(*inputs, mask=mask, dropout_p=0.5).isfinite().all()
