from itertools import accumulate, pairwise

import pytest
import torch

from talkconv.layers.talk_conv import TaLKConv
from talkconv.ops import reference
from talkconv.serving.traced_mixer import TracedMixer, TracedState, by_running_sums, by_weights


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (3, 40), (1, 257)])
@pytest.mark.parametrize("windows", [(0, 0), (3, 0), (2, 7), (31, 31)])
def test_running_sums_are_the_definition(shape, windows):
    torch.manual_seed(0)
    x = torch.randn(*shape, 8)
    left, right = torch.rand(2, *shape, 2)
    # windows that end exactly at a token have no part of the next one
    left[0, 0] = 1.0
    l_max, r_max = windows
    found = by_running_sums(x, left * l_max, right * r_max)
    settings = dict(l_max=l_max, r_max=r_max, normalize=False)
    expected = reference.talk_conv(x.double(), left.double(), right.double(), **settings)
    assert torch.allclose(found.double(), expected, atol=1e-5)


@pytest.mark.parametrize("l_max", [0, 1, 3, 31])
@pytest.mark.parametrize("pieces", [[1] * 6, [6], [2, 1, 3]])
def test_steps_in_pieces_are_the_definition(l_max, pieces):
    torch.manual_seed(0)
    B, T, H = 2, sum(pieces), 2
    x, left = torch.randn(B, T, 8), torch.rand(B, T, H)
    past = torch.zeros(B, H, l_max, 4)
    found = []
    for begin, end in pairwise(accumulate(pieces, initial=0)):
        state = TracedState(past, torch.arange(B), torch.zeros(B))
        out, past = by_weights(x[:, begin:end], left[:, begin:end] * l_max, state, l_max)
        found.append(out)
    right = torch.zeros_like(left)
    expected = reference.talk_conv(x, left, right, l_max=l_max, r_max=0, normalize=False)
    assert torch.allclose(torch.cat(found, dim=1), expected, atol=1e-5)


def test_rows_continue_the_rows_that_they_are_told():
    torch.manual_seed(0)
    mixer = TaLKConv(8, 2, 5, 0).eval()
    traced = TracedMixer(mixer)
    x, then = torch.randn(2, 4, 8), torch.randn(4, 3, 8)
    parents = torch.tensor([1, 0, 1, 1])
    empty = TracedState(torch.zeros(2, 2, 5, 4), torch.arange(2), torch.zeros(2))
    _, state = traced(x, state=empty)
    found, _ = traced(then, state=TracedState(state.tokens, parents, torch.zeros(4)))
    expected = mixer(torch.cat((x[parents], then), dim=1))[:, 4:]
    assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("r_max", [0, 3])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_mixer_is_the_same_with_padding(r_max, normalize):
    torch.manual_seed(0)
    mixer = TaLKConv(8, 2, 4, r_max, normalize=normalize).eval()
    traced = TracedMixer(mixer)
    x = torch.randn(3, 9, 8)
    mask = torch.arange(9) >= torch.tensor([[9], [4], [1]])
    expected = mixer(x, padding_mask=mask)
    assert torch.allclose(traced(x, padding_mask=mask), expected, atol=1e-5)
    left, right = mixer.offsets(x.masked_fill(mask[..., None], 0))
    assert torch.equal(traced.reach[0], left * 4)
    assert torch.equal(traced.reach[1], torch.zeros_like(left) if right is None else right * 3)
