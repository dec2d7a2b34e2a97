"""Checks that the mixers of the measured networks compute what their definitions say."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from talkconv import reference
from talkconv.bench import definitions
from talkconv.bench.correctness import TOLERANCE, Finding, relative_error
from talkconv.bench.networks import LABELS
from talkconv.layers.make_mixer import make_mixer
from talkconv.network_settings import MIXERS

DIM, HEADS, REACH, TOKENS = 16, 4, 5, 37


def check_mixers() -> list[Finding]:
    """Compare the output of each mixer with its dense definition, for encoders and decoders."""
    torch.manual_seed(0)
    found = []
    for kind in MIXERS:
        for r_max in (REACH, 0):
            mixer = make_mixer(kind, DIM, HEADS, REACH, r_max).eval()
            x = torch.randn(2, TOKENS, DIM)
            with torch.no_grad():
                error = relative_error(mixer(x), _DEFINITIONS[kind](mixer.double(), x.double()))
            limit = TOLERANCE[torch.float32]
            name = f"{LABELS[kind]} in {'encoders' if r_max else 'decoders'}"
            why = f"it is off by {error:.1e} of the largest value, allowed {limit:.0e}"
            found.append(Finding(name, error <= limit, why=why))
    return found


def _talk(mixer: Any, x: Tensor) -> Tensor:
    left, right = mixer.offsets(x)
    return reference.talk_conv(x, left, right, l_max=mixer.l_max, r_max=mixer.r_max)


def _attention(mixer: Any, x: Tensor) -> Tensor:
    q, k, v = (
        part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in mixer.to_qkv(x).chunk(3, -1)
    )
    out = definitions.attention(q, k, v, causal=mixer.causal)
    attended: Tensor = mixer.to_out(out.transpose(1, 2).flatten(2))
    return attended


def _convolution(mixer: Any, x: Tensor) -> Tensor:
    weights = mixer.kernels(x)
    B, T, _ = x.shape
    K = weights.shape[-1]
    return definitions.dynamic_conv(
        x, weights.expand(B, T, HEADS, K), before=K - 1 if mixer.causal else K // 2
    )


_DEFINITIONS: dict[str, Callable[[Any, Tensor], Tensor]] = dict(
    talk=_talk, attention=_attention, light=_convolution, dynamic=_convolution
)
