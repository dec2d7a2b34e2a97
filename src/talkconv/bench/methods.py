"""All methods to encode a sequence that the tables compare, by name."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import talkconv
from talkconv.bench import baselines, definitions
from talkconv.bench.inputs import Contestant, Inputs, Setting
from talkconv.layers.band import convolve

OURS = "TaLK"
PLAIN, FUSED = "self-attention, plain", "self-attention, fused"
FLEX = "window attention, FlexAttention"
LIGHT_TAPS = 31

Make = Callable[[Inputs], Contestant]
Function = Callable[..., Tensor]


def _input_size(s: Setting) -> int:
    return s.batch * s.n * s.dim


def _table_size(s: Setting) -> int:
    return s.batch * s.heads * s.n * s.n


@dataclass(frozen=True)
class Method:
    """One way to encode a sequence, as tables and pictures name it."""

    name: str
    # methods of one family compute the same in different ways
    family: str
    make: Make
    # the exponent of its time over n
    power: int = 1
    # the elements of its largest tensor; if that does not fit into memory, the method is not run
    largest: Callable[[Setting], int] = _input_size
    # whether it has gradients on a CPU
    trains: bool = True
    # whether it runs code of this package that users call
    ours: bool = False


def _talk(inputs: Inputs) -> Contestant:
    reach: dict[str, Any] = dict(l_max=inputs.setting.reach, r_max=inputs.setting.reach)
    return Contestant(
        functools.partial(talkconv.talk_conv, **reach),
        (inputs.x, *inputs.offsets),
        functools.partial(talkconv.reference.talk_conv, **reach),
    )


def _attention(function: Function) -> Make:
    return lambda inputs: Contestant(function, inputs.qkv, definitions.attention)


def _window(inputs: Inputs) -> Contestant:
    reach = inputs.setting.reach
    return Contestant(
        functools.partial(baselines.window_attention, reach=reach),
        inputs.qkv,
        functools.partial(definitions.attention, reach=reach),
    )


def _flex(inputs: Inputs) -> Contestant:
    reach = inputs.setting.reach
    mask = baselines.window_mask(inputs.setting.n, reach)
    return Contestant(
        functools.partial(baselines.flex_attention, mask=mask),
        inputs.qkv,
        functools.partial(definitions.attention, reach=reach),
    )


def blocks(x: Tensor, weights: Tensor) -> Tensor:
    """Convolve as the layers of this package do: band matrices over blocks of tokens."""
    K = weights.shape[-1]
    return convolve(x, weights, before=K // 2, after=K - 1 - K // 2)


def _dynamic(function: Function, taps: int) -> Make:
    return lambda inputs: Contestant(
        function, (inputs.x, inputs.kernels(taps)), definitions.dynamic_conv
    )


def _light_blocks(inputs: Inputs) -> Contestant:
    return Contestant(blocks, (inputs.x, inputs.shared_kernel(LIGHT_TAPS)), definitions.light_conv)


def _light_grouped(inputs: Inputs) -> Contestant:
    return Contestant(
        baselines.light_conv_grouped,
        (inputs.channels_first, inputs.shared_kernel(LIGHT_TAPS)),
        definitions.light_conv_channels_first,
    )


def _depthwise(inputs: Inputs) -> Contestant:
    s = inputs.setting
    weight = torch.randn(s.dim, 1, 2 * s.reach + 1, dtype=s.dtype)
    return Contestant(
        baselines.depthwise_conv, (inputs.channels_first, weight), definitions.depthwise_conv
    )


def _lstm(inputs: Inputs) -> Contestant:
    s = inputs.setting
    module = nn.LSTM(s.dim, s.dim, dtype=s.dtype)
    parameters = (parameter.detach() for parameter in module.parameters())
    function = functools.partial(baselines.lstm, module)
    return Contestant(function, (inputs.time_first, *parameters), definitions.lstm)


def _dynamic_methods(taps: int) -> list[Method]:
    family = f"DynamicConv k={taps}"

    def unfolded(s: Setting) -> int:
        return taps * _input_size(s)

    band = _dynamic(baselines.dynamic_conv_band, taps)
    unfold = _dynamic(baselines.dynamic_conv_unfold, taps)
    return [
        Method(f"{family}, band", family, band, power=2, largest=_table_size),
        Method(f"{family}, unfold", family, unfold, largest=unfolded),
        Method(f"{family}, shifts", family, _dynamic(baselines.dynamic_conv_shift, taps)),
        Method(f"{family}, blocks", family, _dynamic(blocks, taps), ours=True),
    ]


_PLAIN = _attention(baselines.eager_attention)
_ALL = (
    Method(OURS, OURS, _talk, ours=True),
    Method(PLAIN, "self-attention", _PLAIN, power=2, largest=_table_size),
    Method(FUSED, "self-attention", _attention(baselines.fused_attention), power=2),
    Method("window attention, blocks", "window attention", _window),
    Method(FLEX, "window attention", _flex, trains=False),
    *_dynamic_methods(3),
    *_dynamic_methods(31),
    Method("LightConv k=31, grouped", "LightConv k=31", _light_grouped),
    Method("LightConv k=31, blocks", "LightConv k=31", _light_blocks, ours=True),
    Method("depthwise convolution k=63", "depthwise convolution k=63", _depthwise),
    Method("LSTM", "LSTM", _lstm),
)
METHODS = {method.name: method for method in _ALL}
