import math

import pytest
import torch

from talkconv.layers import SinusoidalPositions


def test_by_hand():
    """The first token has position 2, because padding has 1. Frequencies fall from 1 to 1e-4."""
    positions = SinusoidalPositions(6).values(3)
    assert positions.shape == (1, 3, 6)
    expected = [wave(2 * f) for wave in (math.sin, math.cos) for f in (1, 1e-2, 1e-4)]
    torch.testing.assert_close(positions[0, 0], torch.tensor(expected))
    torch.testing.assert_close(positions[0, 2, 3], torch.tensor(math.cos(4)))


def test_an_odd_dim_ends_in_zeros():
    positions = SinusoidalPositions(7).values(5)
    assert torch.equal(positions[..., :6], SinusoidalPositions(6).values(5))
    assert positions[..., 6].abs().max() == 0


def test_padding_is_not_counted():
    layer = SinusoidalPositions(8)
    left = torch.tensor([[True, True, False, False], [False, False, False, True]])
    positions = layer.values(4, padding_mask=left)
    plain = layer.values(4)[0]
    assert torch.equal(positions[0], torch.cat((torch.zeros(2, 8), plain[:2])))
    assert torch.equal(positions[1], torch.cat((plain[:3], torch.zeros(1, 8))))


def test_a_stream_goes_on():
    layer = SinusoidalPositions(8)
    plain = layer.values(100_005)[0]
    assert torch.equal(layer.values(5, start=100_000)[0], plain[-5:])
    starts = torch.tensor([3, 0])
    rows = layer.values(2, start=starts)
    assert torch.equal(rows[0], plain[3:5])
    assert torch.equal(rows[1], plain[:2])
    mask = torch.tensor([[False, False], [True, False]])
    rows = layer.values(2, start=starts, padding_mask=mask)
    assert torch.equal(rows[0], plain[3:5])
    assert torch.equal(rows[1, 1], plain[0])


def test_half_precision_rounds_once():
    layer = SinusoidalPositions(8).to(torch.bfloat16)
    assert torch.equal(
        layer.values(3000, dtype=torch.bfloat16), layer.values(3000).to(torch.bfloat16)
    )


def test_called_as_a_layer_it_follows_dtype_and_device():
    layer = SinusoidalPositions(8)
    x = torch.randn(2, 5, 8)
    assert torch.equal(layer(x), x + layer.values(5))
    starts = torch.tensor([3, 0])
    mask = torch.tensor([[True, False, False, False, False], [False] * 5])
    expected = x + layer.values(5, start=starts, padding_mask=mask)
    assert torch.equal(layer(x, start=starts, padding_mask=mask), expected)
    half = layer.half()(x.half())
    assert half.dtype == torch.float16
    assert torch.equal(half, x.half() + layer.values(5).half())
    assert layer(torch.empty(2, 5, 8, device="meta")).device.type == "meta"
    stack = torch.nn.Sequential(torch.nn.Embedding(10, 8), layer.float())
    assert stack(torch.tensor([[1, 2, 3]])).shape == (1, 3, 8)


def test_bad_calls():
    with pytest.raises(ValueError, match="at least 4"):
        SinusoidalPositions(3)
    assert SinusoidalPositions(4).values(2).isfinite().all()
    with pytest.raises(ValueError, match=r"\(B, T\) with T = 3, got \(1, 4\)"):
        SinusoidalPositions(8).values(3, padding_mask=torch.zeros(1, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"\(B, T, dim\) with dim = 8, got \(2, 3, 6\)"):
        SinusoidalPositions(8)(torch.zeros(2, 3, 6))
