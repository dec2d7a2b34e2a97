import torch
from torch import nn

from talkconv.layers import SelfAttention
from tests.layers.cases import DIM, HEADS, assert_same, random_mixer, random_tokens


def theirs(layer: SelfAttention) -> nn.MultiheadAttention:
    module = nn.MultiheadAttention(DIM, HEADS, batch_first=True).eval()
    module.in_proj_weight.data, module.in_proj_bias.data = layer.to_qkv.weight, layer.to_qkv.bias
    module.out_proj.weight.data, module.out_proj.bias.data = layer.to_out.weight, layer.to_out.bias
    return module


def test_equals_torch():
    x = random_tokens(2, 9)
    mask = torch.arange(9) >= torch.tensor([9, 5])[:, None]
    layer = random_mixer("attention", r_max=4)
    expected, _ = theirs(layer)(x, x, x, key_padding_mask=mask)
    assert_same(layer(x, padding_mask=mask), expected)


def test_causal_equals_torch():
    x = random_tokens(2, 9)
    layer = random_mixer("attention")
    ahead = torch.ones(9, 9, dtype=torch.bool).triu(1)
    expected, _ = theirs(layer)(x, x, x, attn_mask=ahead)
    assert_same(layer(x), expected)


def test_dropout_is_for_training():
    layer = SelfAttention(DIM, HEADS, attention_dropout=0.5)
    x = random_tokens(1, 9)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_steps_do_not_copy_the_past():
    layer = random_mixer("attention")
    state = layer.empty_state(1)
    places = set()
    with torch.no_grad():
        for _ in range(300):
            _, state = layer(random_tokens(1, 1), state=state)
            places.add(state.cache.pairs.data_ptr())
    assert state.seen == 300
    assert state.keys.shape == (1, HEADS, 300, DIM // HEADS)
    assert len(places) <= 4  # room for 64 tokens, then for twice as many each time


def test_picked_beams_have_room_for_their_steps():
    layer = random_mixer("attention")
    with torch.no_grad():
        _, state = layer(random_tokens(2, 5), state=layer.empty_state(2))
        picked = state.reorder(torch.tensor([1, 1, 0]))
        _, after = layer(random_tokens(3, 1), state=picked)
    assert after.cache is picked.cache


def test_padding_is_kept_when_the_cache_grows():
    layer = random_mixer("attention")
    x = random_tokens(2, 200)
    mask = torch.arange(200) < torch.tensor([7, 0])[:, None]
    state = layer.empty_state(2)
    with torch.no_grad():
        for part, part_mask in zip(x.split(20, dim=1), mask.split(20, dim=1), strict=True):
            out, state = layer(
                part, padding_mask=part_mask if part_mask.any() else None, state=state
            )
        assert_same(out[:1], layer(x[:1, 7:])[:, -20:])
        assert_same(out[1:], layer(x[1:])[:, -20:])


def test_padding_of_one_stream_is_not_that_of_another():
    """Two streams continue from one state, in which the first row is padding so far.

    One stream pads that row again, and the other one does not.
    """
    layer = random_mixer("attention")
    x, then = random_tokens(2, 3), random_tokens(2, 2, seed=2)
    waits = torch.tensor([[True], [False]])
    with torch.no_grad():
        _, state = layer(x, padding_mask=waits.expand(2, 3), state=layer.empty_state(2))
        layer(then, padding_mask=waits.expand(2, 2), state=state)
        out, _ = layer(then, state=state.reorder(torch.tensor([0, 1])))
        assert_same(out[:1], layer(then[:1]))


def test_starts_as_three_layers_of_lower_gain():
    layer = SelfAttention(64, 4)
    bound = (6 / (64 + 64)) ** 0.5 / 2**0.5
    assert 0.95 * bound < layer.to_qkv.weight.abs().max() <= bound
    assert layer.to_qkv.bias.abs().max() == layer.to_out.bias.abs().max() == 0


def test_it_is_two_sided_unless_told():
    assert not SelfAttention(DIM, HEADS).causal
