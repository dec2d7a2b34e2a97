import pytest
import torch
from torch import nn

from talkconv import TaLKConv, talk_conv
from tests.layers.cases import assert_same, random_mixer, random_tokens


def half_windows(**settings):
    """Return a layer of one channel in which every offset is sigmoid(0) = 0.5."""
    layer = TaLKConv(1, heads=1, **settings)
    nn.init.zeros_(layer.to_offsets.weight)
    return layer


def test_by_hand():
    x = torch.arange(1.0, 6.0).view(1, 5, 1)
    out = half_windows(l_max=1, r_max=1)(x)
    torch.testing.assert_close(3 * out.flatten(), torch.tensor([2.0, 4, 6, 8, 7]))
    causal = half_windows(l_max=2, r_max=0, normalize=False)(x)
    torch.testing.assert_close(causal.flatten(), torch.tensor([1.0, 3, 5, 7, 9]))


@pytest.mark.parametrize("r_max", [0, 3])
def test_is_the_operation_on_predicted_offsets(r_max):
    layer = random_mixer("talk", r_max=r_max)
    x = random_tokens(2, 9)
    offsets = (x @ layer.to_offsets.weight.T + layer.to_offsets.bias).sigmoid()
    left, right = offsets[..., :3], offsets[..., 3:] if r_max else None
    assert_same(layer(x), talk_conv(x, left, right, l_max=4, r_max=r_max))


def test_offset_dropout_scales_windows_past_l_max():
    layer = half_windows(l_max=1, r_max=0, offset_dropout=0.5)
    nn.init.constant_(layer.to_offsets.bias, 30.0)  # all offsets 1, and in training 0 or 2
    ones = torch.ones(1, 200, 1)
    sums = 2 * layer(ones).flatten()[2:]
    assert set(sums.unique().tolist()) == {1.0, 3.0}
    assert layer.empty_state(1).max_offset == 2.0
    layer.eval()
    torch.testing.assert_close(2 * layer(ones).flatten()[1:], torch.full((199,), 2.0))
    assert layer.empty_state(1).max_offset == 1.0


def test_starts_with_windows_of_half_their_reach():
    layer = TaLKConv(64, heads=4, l_max=7, r_max=7)
    assert layer.to_offsets.weight.shape == (8, 64)
    assert layer.to_offsets.bias.abs().max() == 0
    left, right = layer.offsets(torch.zeros(1, 1, 64))
    assert left.unique().tolist() == right.unique().tolist() == [0.5]


def test_offsets_keep_float32_in_half_layers():
    layer = random_mixer("talk").half()
    left, right = layer.offsets(random_tokens(1, 3).half())
    assert left.dtype == torch.float32
    assert right is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(dim=10, heads=4, l_max=1, r_max=1), "heads must divide dim, got dim=10, heads=4"),
        (dict(dim=8, heads=4, l_max=-1, r_max=1), "at least 0, got l_max=-1"),
        (dict(dim=8, heads=4, l_max=1, r_max=-1), "at least 0, got l_max=1, r_max=-1"),
        (dict(dim=8, heads=0, l_max=1, r_max=1), "heads must divide dim, got dim=8, heads=0"),
        (dict(dim=8, heads=4, l_max=1, r_max=1, offset_dropout=1.0), r"must lie in \[0, 1\)"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        TaLKConv(**settings)


def test_gradients_of_each_sample():
    torch.manual_seed(0)
    mix = TaLKConv(8, heads=2, l_max=3, r_max=2).eval()
    weights = {name: weight.detach() for name, weight in mix.named_parameters()}
    x = torch.randn(3, 6, 8)

    def loss(weights, sample):
        return torch.func.functional_call(mix, weights, (sample[None],)).sin().sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, x)
    for index, sample in enumerate(x):
        mix.zero_grad()
        mix(sample[None]).sin().sum().backward()
        for name, weight in mix.named_parameters():
            torch.testing.assert_close(each[name][index], weight.grad)
