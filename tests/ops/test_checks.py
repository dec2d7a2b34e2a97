"""Tests that each wrong argument has its own message: what must hold, and what was passed."""

import pytest
import torch

from talkconv import talk_conv
from talkconv.ops import checks

X = torch.randn(2, 5, 12)
OFFSETS = torch.rand(2, 5, 3)
GOOD = dict(x=X, left=OFFSETS, right=OFFSETS, l_max=4, r_max=3)
PACKED = dict(x=X[0], left=OFFSETS[0], right=OFFSETS[0], l_max=4, r_max=3)

MISTAKES = {
    "rank of x": (dict(x=X[0]), ValueError, r"x must be \(B, T, C\), got \(5, 12\)"),
    "rank of left": (dict(left=OFFSETS[0]), ValueError, r"left must be .* got \(5, 3\)"),
    "tokens of right": (
        dict(right=OFFSETS[:, :4]),
        ValueError,
        r"right must be \(B, T, H\) with B, T = \(2, 5\), got \(2, 4, 3\)",
    ),
    "heads that do not divide": (
        dict(left=torch.rand(2, 5, 5), right=torch.rand(2, 5, 5)),
        ValueError,
        "must divide the channels of x, got H = 5 and C = 12",
    ),
    "no heads": (dict(left=OFFSETS[..., :0]), ValueError, "H = 0"),
    "other heads": (dict(right=torch.rand(2, 5, 4)), ValueError, "same shape"),
    "other dtypes": (dict(right=OFFSETS.double()), TypeError, "same dtype"),
    "integer x": (dict(x=X.long()), TypeError, "x must be one of float32.* got torch.int64"),
    "complex x": (dict(x=X.cfloat()), TypeError, "got torch.complex64"),
    "x is a list": (dict(x=[1.0]), TypeError, "x must be a tensor, got list"),
    "integer offsets": (dict(left=OFFSETS.int()), TypeError, "left must be one of"),
    "device": (dict(left=OFFSETS.to("meta")), ValueError, r"left.to\(x.device\)"),
    "negative l_max": (dict(l_max=-1), ValueError, "l_max must lie in 0 .. .* got -1"),
    "absurd r_max": (dict(r_max=2**40), ValueError, "r_max must lie in"),
    "real l_max": (dict(l_max=3.0), TypeError, "l_max must be an int"),
    "l_max is a bool": (dict(l_max=True), TypeError, "l_max must be an int"),
    "negative max_offset": (dict(max_offset=-0.1), ValueError, "finite and at least 0, got -0.1"),
    "infinite max_offset": (dict(max_offset=float("inf")), ValueError, "finite"),
    "NaN max_offset": (dict(max_offset=float("nan")), ValueError, "finite"),
    "max_offset is a bool": (dict(max_offset=True), TypeError, "max_offset must be a float"),
    "max_offset is a str": (dict(max_offset="1"), TypeError, "max_offset must be a float"),
    "missing right": (dict(right=None), ValueError, "right may be None only with r_max=0"),
    "both missing": (
        dict(left=None, right=None, l_max=0, r_max=0),
        ValueError,
        "pass at least one",
    ),
    "long lengths": (
        dict(lengths=torch.tensor([5, 6])),
        ValueError,
        "lengths must lie in 0 .. T = 5, got 5 .. 6",
    ),
    "negative lengths": (dict(lengths=torch.tensor([-1, 5])), ValueError, "got -1 .. 5"),
    "too many lengths": (dict(lengths=torch.tensor([1, 2, 3])), ValueError, "B = 2"),
    "real lengths": (dict(lengths=torch.tensor([1.0, 2.0])), TypeError, "int32 or int64"),
    "lengths is a list": (dict(lengths=[5, 5]), TypeError, "lengths must be an integer tensor"),
    "device of lengths": (
        dict(lengths=torch.tensor([5, 3], device="meta")),
        ValueError,
        r"lengths must be on the device of x, cpu, got meta; move it with lengths.to\(x.device\)",
    ),
    "rank of lengths": (dict(lengths=torch.ones(2, 1).int()), ValueError, r"\(B,\), got \(2, 1\)"),
}

PACKED_MISTAKES = {
    "tokens of left": (
        dict(left=OFFSETS[0, :4]),
        ValueError,
        r"left must be \(N, H\) with N = \(5,\), got \(4, 3\)",
    ),
    "not packed": (dict(x=X), ValueError, r"must be packed \(N, C\), got \(2, 5, 12\)"),
    "falls": (dict(cu_seqlens=torch.tensor([0, 4, 3, 5])), ValueError, "fall, got 4 then 3"),
    "does not begin": (dict(cu_seqlens=torch.tensor([1, 5])), ValueError, "got 1 .. 5"),
    "does not end": (dict(cu_seqlens=torch.tensor([0, 4])), ValueError, "0 to N = 5.* got 0 .. 4"),
    "empty": (dict(cu_seqlens=torch.tensor([], dtype=torch.int64)), ValueError, "leading 0"),
    "with lengths": (dict(lengths=torch.tensor([5])), ValueError, "exclude each other"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(implementation, mistake):
    change, error, message = MISTAKES[mistake]
    with pytest.raises(error, match=message):
        talk_conv(**{**GOOD, **change})


@pytest.mark.parametrize("mistake", PACKED_MISTAKES)
def test_a_mistake_in_packing_is_named(implementation, mistake):
    change, error, message = PACKED_MISTAKES[mistake]
    with pytest.raises(error, match=message):
        talk_conv(**{**PACKED, "cu_seqlens": torch.tensor([0, 2, 5]), **change})


def test_mistakes_do_not_hide_in_compiled_code():
    """Values are checked when the graph runs, because lengths are data there."""
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def network(x, offsets, lengths):
        return talk_conv(x, offsets, offsets, l_max=4, r_max=3, lengths=lengths)

    assert network(X, OFFSETS, torch.tensor([5, 3])).shape == X.shape
    with pytest.raises(ValueError, match="lengths must lie in"):
        network(X, OFFSETS, torch.tensor([5, 9]))


def test_the_largest_reach_is_the_largest_int32():
    checks.check_reach("l_max", 2**31 - 1)
    with pytest.raises(ValueError, match=r"l_max must lie in 0 \.\. 2147483647 tokens"):
        checks.check_reach("l_max", 2**31)


def test_no_lengths_of_an_empty_batch():
    none = torch.empty(0, dtype=torch.int64)
    out = talk_conv(X[:0], OFFSETS[:0], OFFSETS[:0], l_max=4, r_max=3, lengths=none)
    assert out.shape == (0, 5, 12)
