"""Makes a mixer by its name, so that one word of a config selects any row of the paper's tables."""

from talkconv.layers.dynamic_conv import DynamicConv
from talkconv.layers.light_conv import LightConv
from talkconv.layers.mixer import Mixer
from talkconv.layers.self_attention import SelfAttention
from talkconv.layers.talk_conv import TaLKConv
from talkconv.network_settings import MIXERS, NetworkSettings


def make_mixer(
    kind: str,
    dim: int,
    heads: int,
    l_max: int,
    r_max: int,
    *,
    offset_dropout: float = NetworkSettings.offset_dropout,
    weight_dropout: float = NetworkSettings.weight_dropout,
    attention_dropout: float = NetworkSettings.attention_dropout,
    normalize: bool = NetworkSettings.normalize,
) -> Mixer:
    """Make one of MIXERS. It is causal if r_max=0, and uses only the dropout of its own kind.

    The kernels of "light" and "dynamic" have the width of the widest window, l_max + r_max + 1
    tokens. "attention" sees all tokens, whatever l_max and r_max are.

    >>> make_mixer("dynamic", 8, heads=2, l_max=3, r_max=0).kernel_size
    4
    """
    causal = r_max == 0
    if kind == "talk":
        return TaLKConv(dim, heads, l_max, r_max, offset_dropout, normalize=normalize)
    if kind == "attention":
        return SelfAttention(dim, heads, causal=causal, attention_dropout=attention_dropout)
    if kind not in MIXERS:
        raise ValueError(f"mixer must be one of {', '.join(MIXERS)}; got {kind!r}")
    if not causal and l_max != r_max:
        raise ValueError(
            f"mixer {kind!r} needs l_max = r_max (each token is in the middle of its kernel) or "
            f"r_max = 0 (it is at the end), got {l_max=}, {r_max=}"
        )
    convolution = LightConv if kind == "light" else DynamicConv
    return convolution(dim, heads, l_max + r_max + 1, causal=causal, weight_dropout=weight_dropout)
