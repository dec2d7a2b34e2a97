import math

import pytest
import torch

from talkconv.layers import SinusoidalPositions


def test_by_hand():
    """The first token has position 2, after the padding's 1; frequencies run from 1 to 1e-4."""
    positions = SinusoidalPositions(6)(3)
    assert positions.shape == (1, 3, 6)
    expected = [wave(2 * f) for wave in (math.sin, math.cos) for f in (1, 1e-2, 1e-4)]
    torch.testing.assert_close(positions[0, 0], torch.tensor(expected))
    torch.testing.assert_close(positions[0, 2, 3], torch.tensor(math.cos(4)))


def test_an_odd_dim_ends_in_zeros():
    positions = SinusoidalPositions(7)(5)
    assert torch.equal(positions[..., :6], SinusoidalPositions(6)(5))
    assert positions[..., 6].abs().max() == 0


def test_padding_is_not_counted():
    layer = SinusoidalPositions(8)
    left = torch.tensor([[True, True, False, False], [False, False, False, True]])
    positions = layer(4, padding_mask=left)
    plain = layer(4)[0]
    assert torch.equal(positions[0], torch.cat((torch.zeros(2, 8), plain[:2])))
    assert torch.equal(positions[1], torch.cat((plain[:3], torch.zeros(1, 8))))


def test_a_stream_goes_on():
    layer = SinusoidalPositions(8)
    plain = layer(100_005)[0]
    assert torch.equal(layer(5, start=100_000)[0], plain[-5:])
    starts = torch.tensor([3, 0])
    rows = layer(2, start=starts)
    assert torch.equal(rows[0], plain[3:5])
    assert torch.equal(rows[1], plain[:2])
    mask = torch.tensor([[False, False], [True, False]])
    rows = layer(2, start=starts, padding_mask=mask)
    assert torch.equal(rows[0], plain[3:5])
    assert torch.equal(rows[1, 1], plain[0])


def test_half_precision_rounds_once():
    layer = SinusoidalPositions(8).to(torch.bfloat16)
    assert torch.equal(layer(3000, dtype=torch.bfloat16), layer(3000).to(torch.bfloat16))


def test_bad_calls():
    with pytest.raises(ValueError, match="at least 4"):
        SinusoidalPositions(2)
    with pytest.raises(ValueError, match=r"\(B, T\) with T = 3, got \(1, 4\)"):
        SinusoidalPositions(8)(3, padding_mask=torch.zeros(1, 4, dtype=torch.bool))
