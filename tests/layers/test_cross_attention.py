import pytest
import torch
from torch import nn

from talkconv.layers import CrossAttention
from tests.layers.cases import DIM, HEADS, assert_same, random_parameters, random_tokens


def test_equals_torch():
    layer = random_parameters(CrossAttention(DIM, HEADS))
    module = nn.MultiheadAttention(DIM, HEADS, batch_first=True).eval()
    parts = (layer.to_query, layer.to_key, layer.to_value)
    module.in_proj_weight.data = torch.cat([part.weight for part in parts])
    module.in_proj_bias.data = torch.cat([part.bias for part in parts])
    module.out_proj.weight.data, module.out_proj.bias.data = layer.to_out.weight, layer.to_out.bias
    x, states = random_tokens(2, 5), random_tokens(2, 7, seed=2)
    mask = torch.arange(7) >= torch.tensor([7, 3])[:, None]
    expected, _ = module(x, states, states, key_padding_mask=mask)
    assert_same(layer(x, layer.project(states, mask)), expected)


@pytest.mark.parametrize("t", [1, 3])
def test_beams_share_their_states(t):
    layer = random_parameters(CrossAttention(DIM, HEADS, encoder_dim=6))
    x, states = random_tokens(2 * 5, t), random_tokens(2, 7, seed=2)[..., :6]
    mask = torch.arange(7) >= torch.tensor([4, 7])[:, None]
    shared = layer.project(states, mask)
    assert shared.keys.shape == (2, HEADS, 7, DIM // HEADS)
    copied = layer.project(states.repeat_interleave(5, 0), mask.repeat_interleave(5, 0))
    assert_same(layer(x, shared), layer(x, copied))
    picked = layer(x[5:], shared.reorder(torch.tensor([1])))
    assert_same(picked, layer(x, shared)[5:])


def test_bad_calls():
    layer = CrossAttention(DIM, HEADS)
    states = random_tokens(2, 7)
    with pytest.raises(ValueError, match="for each of the 2 sentences of the encoder, got 3 rows"):
        layer(random_tokens(3, 1), layer.project(states))
    with pytest.raises(ValueError, match="encoder_dim = 12, got"):
        layer.project(states[..., :6])
    with pytest.raises(ValueError, match=r"must be bool \(B, S\) = \(2, 7\)"):
        layer.project(states, torch.zeros(2, 7))
    with pytest.raises(ValueError, match="encoder_dim = 12, got"):
        layer.project(states[0])
    for heads in (0, 5):
        with pytest.raises(ValueError, match="heads must divide dim"):
            CrossAttention(DIM, heads)


def test_starts_with_the_gain_of_self_attention():
    layer = CrossAttention(64, 1)
    bound = (6 / (64 + 64)) ** 0.5
    for part in (layer.to_query, layer.to_key, layer.to_value):
        assert 0.95 * bound / 2**0.5 < part.weight.abs().max() <= bound / 2**0.5
    assert 0.95 * bound < layer.to_out.weight.abs().max() <= bound


def test_the_weights_are_those_of_the_sums():
    """For each beam and head, the weights times the values are what to_out projects."""
    layer = random_parameters(CrossAttention(DIM, HEADS))
    x, states = random_tokens(2 * 3, 4), random_tokens(2, 7, seed=2)
    mask = torch.arange(7) >= torch.tensor([4, 7])[:, None]
    projected = layer.project(states, mask)
    weights = layer.weights(x, projected)
    assert weights.shape == (6, HEADS, 4, 7)
    summed = weights @ projected.values.repeat_interleave(3, dim=0)
    assert_same(layer.to_out(summed.transpose(1, 2).flatten(2)), layer(x, projected))
