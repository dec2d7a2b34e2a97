import pytest
import torch

from talkconv.layers.talk_conv import TaLKConv
from talkconv.ops import reference
from talkconv.report.windows import windows_of
from tests.demo.cases import tiny_model


def test_there_is_one_reach_for_each_layer_head_and_token():
    encoder, decoder = windows_of(tiny_model(), [5, 6, 7, 8, 2], [9, 10, 2])
    assert [(layer["l_max"], layer["r_max"]) for layer in encoder] == [(1, 1), (3, 3)]
    assert [(layer["l_max"], layer["r_max"]) for layer in decoder] == [(3, 0)]
    for layers, tokens in ((encoder, 5), (decoder, 3)):
        for layer in layers:
            assert torch.tensor(layer["left"]).shape == (2, tokens)
            assert torch.tensor(layer["right"]).shape == (2, tokens)
            assert min(map(min, layer["left"])) >= 0
            assert max(map(max, layer["left"])) <= layer["l_max"]
            assert max(map(max, layer["right"])) <= layer["r_max"]


def test_each_reach_is_the_predicted_offset_times_the_greatest_reach():
    model = tiny_model()
    mixers = [module for module in model.encoder.modules() if isinstance(module, TaLKConv)]
    with torch.no_grad():
        for mixer in mixers:
            mixer.to_offsets.weight.zero_()
            # the heads of the left, then of the right; sigmoid(log 3) = 3/4
            mixer.to_offsets.bias.copy_(torch.tensor([1, 3, 1 / 3, 1]).log())
    _, second = windows_of(model, [5, 6, 2], [9, 2])[0]
    assert second["left"] == [[1.5] * 3, [2.25] * 3]
    assert second["right"] == [[0.75] * 3, [1.5] * 3]


def test_the_windows_are_those_the_layer_sums_over():
    """The windows on the page, put into the definition, give the layer's output."""
    model = tiny_model()
    layer = next(module for module in model.encoder.modules() if isinstance(module, TaLKConv))
    seen = []
    hook = layer.register_forward_hook(lambda _, inputs, output: seen.extend((inputs[0], output)))
    found = windows_of(model, [5, 6, 7, 8, 9, 2], [9, 2])[0][0]
    hook.remove()
    x, output = seen
    left, right = (torch.tensor(found[side]).T[None] / layer.l_max for side in ("left", "right"))
    expected = reference.talk_conv(x, left, right, l_max=layer.l_max, r_max=layer.r_max)
    # reaches are rounded to hundredths
    torch.testing.assert_close(output, expected, atol=0.02, rtol=0)


def test_a_network_with_another_mixer_has_no_windows():
    from talkconv.models import TaLKConvConfig, TaLKConvForConditionalGeneration

    config = TaLKConvConfig(
        vocab_size=20, dim=8, heads=2, ff_dim=16, encoder_l_max=[1], decoder_l_max=[1],
        encoder_mixer="attention", decoder_mixer="attention",
    )  # fmt: skip
    assert windows_of(TaLKConvForConditionalGeneration(config), [5, 2], [6, 2]) == ([], [])


def test_no_hook_is_left_behind():
    model = tiny_model()
    with pytest.raises(IndexError):
        windows_of(model, [99], [6, 2])
    assert not any(module._forward_pre_hooks for module in model.modules())
