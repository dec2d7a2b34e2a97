import pytest
import torch
from torch import nn

from talkconv.layers import DynamicConv
from tests.layers.cases import assert_same


@pytest.mark.parametrize("side", ["encoder", "decoder"])
@pytest.mark.parametrize("kernel_size", [3, 7])
def test_equals_fairseq(authors, side, kernel_size):
    case = authors("fairseq_convs.pt")[f"dynamic.{side}.k{kernel_size}"]
    layer = DynamicConv(32, 4, kernel_size, causal=side == "decoder")
    layer.load_state_dict({"to_kernels.weight": case["state"]["weight_linear.weight"]})
    out = layer(case["x_TBC"].transpose(0, 1))
    assert_same(out.transpose(0, 1), case["y_TBC"])


def test_by_hand():
    """With equal weights, the result is the mean of three tokens. Missing tokens are 0."""
    x = torch.arange(1.0, 6.0).view(1, 5, 1)
    for causal, expected in ((False, [3.0, 6, 9, 12, 9]), (True, [1.0, 3, 6, 9, 12])):
        layer = DynamicConv(1, heads=1, kernel_size=3, causal=causal)
        nn.init.zeros_(layer.get_parameter("to_kernels.weight"))
        torch.testing.assert_close(3 * layer(x).flatten(), torch.tensor(expected))


def test_weight_dropout_is_for_training():
    layer = DynamicConv(4, heads=2, kernel_size=3, weight_dropout=0.5)
    x = torch.randn(1, 9, 4)
    assert len({layer(x).sum().item() for _ in range(9)}) > 1
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_bad_settings():
    with pytest.raises(ValueError, match="kernel_size must be at least 1, got 0"):
        DynamicConv(4, heads=2, kernel_size=0)


def test_it_is_two_sided_unless_told():
    assert not DynamicConv(8, heads=4, kernel_size=3).causal
