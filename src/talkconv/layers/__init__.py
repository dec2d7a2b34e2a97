"""The layers: modules that are built on the operation. They need no package but torch."""

from talkconv.layers.adaptive import AdaptiveInput, AdaptiveSoftmax
from talkconv.layers.blocks import BlockSettings, DecoderBlock, EncoderBlock
from talkconv.layers.cross_attention import CrossAttention, ProjectedStates
from talkconv.layers.dynamic_conv import DynamicConv
from talkconv.layers.light_conv import LightConv
from talkconv.layers.make_mixer import make_mixer
from talkconv.layers.mixer import Mixer, MixerState
from talkconv.layers.positions import SinusoidalPositions
from talkconv.layers.self_attention import KeyValueState, SelfAttention
from talkconv.layers.talk_conv import TaLKConv
from talkconv.network_settings import MIXERS

__all__ = [
    "MIXERS",
    "AdaptiveInput",
    "AdaptiveSoftmax",
    "BlockSettings",
    "CrossAttention",
    "DecoderBlock",
    "DynamicConv",
    "EncoderBlock",
    "KeyValueState",
    "LightConv",
    "Mixer",
    "MixerState",
    "ProjectedStates",
    "SelfAttention",
    "SinusoidalPositions",
    "TaLKConv",
    "make_mixer",
]
