"""Time-aware Large Kernel (TaLK) convolutions: windows that every token chooses, summed in O(n).

Shapes, here and everywhere below: B sequences, T tokens, C channels, H heads of R = C / H channels.
Batch first; "packed" sequences lie end to end in N tokens.
"""

from talkconv.layers.blocks import DecoderBlock, EncoderBlock
from talkconv.layers.talk_conv import TaLKConv
from talkconv.ops import reference
from talkconv.ops.step import TaLKState, talk_conv_step
from talkconv.ops.talk_conv import talk_conv

__version__ = "0.1.0"

__all__ = [
    "DecoderBlock",
    "EncoderBlock",
    "TaLKConv",
    "TaLKState",
    "reference",
    "talk_conv",
    "talk_conv_step",
]
