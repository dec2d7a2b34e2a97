"""TaLKConv written in operations of ONNX, for tensors of any shape.

The kernels of `talkconv.ops` are not part of ONNX, and the plain PyTorch form works on blocks whose
number depends on the length. Here an encoder's layer reads its windows from one running sum over
the sentence, in float64. A decoder's layer computes the weights of its few next tokens and
multiplies: that costs less than running sums for a step of one token.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from talkconv.layers.mixer import zero_padding
from talkconv.layers.talk_conv import TaLKConv


@dataclass(frozen=True)
class TracedState:
    """The past of a decoder's layer, which is an input and an output of the graph.

    `tokens` (P, H, L, R) are the L last tokens of P rows, the newest last. `parents` (rows,) says
    which of them each row of the step continues. `start` (rows,) is the number of tokens before.
    """

    tokens: Tensor
    parents: Tensor
    start: Tensor

    @property
    def seen(self) -> Tensor:
        """The number of tokens before, for the positions of the next ones."""
        return self.start


class TracedMixer(nn.Module):
    """Replaces a TaLKConv while a network is exported.

    `reach` holds how many tokens each token of the last call looked at, as the page shows it: left
    and right (B, T, H) in tokens.
    """

    batch_first = True

    def __init__(self, mixer: TaLKConv) -> None:
        super().__init__()
        self.mixer = mixer
        self.causal = mixer.causal
        self.reach: tuple[Tensor, Tensor] | None = None

    @property
    def scale(self) -> float:
        mixer = self.mixer
        return 1 / (mixer.l_max + mixer.r_max + 1) if mixer.normalize else 1.0

    def forward(
        self,
        x: Tensor,
        *,
        lengths: Tensor | None = None,
        padding_mask: Tensor | None = None,
        cu_seqlens: Tensor | None = None,
        state: TracedState | None = None,
    ) -> Tensor | tuple[Tensor, TracedState]:
        """Mix x (B, T, dim) as the TaLKConv does; with a state, return the new one beside it."""
        assert lengths is None, "an exported network takes masks"
        assert cu_seqlens is None, "an exported network takes masks"
        x = zero_padding(x, padding_mask)
        left, right = self.mixer.offsets(x)
        left = left * self.mixer.l_max
        right = torch.zeros_like(left) if right is None else right * self.mixer.r_max
        self.reach = left, right
        if state is None:
            return by_running_sums(x, left, right) * self.scale
        mixed, stream = by_weights(x, left, state, self.mixer.l_max)
        return mixed * self.scale, TracedState(stream, state.parents, state.start)


def by_running_sums(x: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Sum x (B, T, C) over windows that reach left and right (B, T, H) tokens -> (B, T, C).

    The sums are float64, so that the difference of two of them is exact enough at any length.
    """
    B, T, C = x.shape
    H = left.shape[-1]
    R = C // H
    # row i of the sums holds the tokens before i; one more row of zeros stands on both sides of x
    sums = F.pad(x.double().cumsum(1), (0, 0, 1, 0)).reshape(B * (T + 1) * H, R)
    tokens = F.pad(x, (0, 0, 1, 1)).reshape(B * (T + 2) * H, R)
    sentence = torch.arange(B, device=x.device)[:, None, None]
    token = torch.arange(T, device=x.device)[:, None]
    head = torch.arange(H, device=x.device)

    def rows(table: Tensor, length: int, at: Tensor) -> Tensor:
        """Gather whole rows of a head: ONNX Runtime copies them as blocks of memory."""
        index = (sentence * length + at) * H + head  # (B, T, H)
        return table.index_select(0, index.reshape(-1)).reshape(B, T, H, R)

    whole_left, whole_right = left.floor(), right.floor()
    first = (token - whole_left.long()).clamp(min=0)
    past = (token + whole_right.long() + 1).clamp(max=T)
    inside = rows(sums, T + 1, past) - rows(sums, T + 1, first)
    # the token before `first` is row `first` of the padded tokens, and `past` is row `past` + 1
    left_edge = rows(tokens, T + 2, first) * (left - whole_left)[..., None]
    right_edge = rows(tokens, T + 2, past + 1) * (right - whole_right)[..., None]
    return (inside.to(x.dtype) + left_edge + right_edge).reshape(B, T, C)


def by_weights(x: Tensor, left: Tensor, state: TracedState, l_max: int) -> tuple[Tensor, Tensor]:
    """Sum over windows of the next tokens: x (rows, t, C), left (rows, t, H) -> (rows, t, C).

    Also returns the stream (rows, H, l_max + t, R): the past that windows reach, and x. It is the
    next step's past. The memory of t tokens grows with t * t, so that long prompts come in pieces.
    """
    rows, t, C = x.shape
    H = left.shape[-1]
    past = _past(state, rows, l_max)  # (rows, H, l_max, R)
    heads = x.reshape(rows, t, H, C // H).transpose(1, 2)  # (rows, H, t, R)
    stream = torch.cat((past, heads), dim=2)
    # how far back each token of the stream lies, seen from each token of x
    ahead = torch.arange(t, device=x.device)[:, None] + l_max
    distance = (ahead - torch.arange(l_max + t, device=x.device)).to(x.dtype)  # (t, l_max + t)
    weights = (left.transpose(1, 2)[..., None] + (1 - distance)).clamp(0, 1)
    weights = weights * (distance >= 0).to(x.dtype)  # (rows, H, t, l_max + t)
    mixed = (weights @ stream).transpose(1, 2).reshape(rows, t, C)
    return mixed, stream


def _past(state: TracedState, rows: int, l_max: int) -> Tensor:
    """Return the last l_max tokens of each row's parent: (rows, H, l_max, R).

    One gather picks parents and tokens at once, so that the past is copied once.
    """
    P, H, L, R = state.tokens.shape
    place = torch.arange(H, device=state.tokens.device)[:, None] * L
    place = place + torch.arange(l_max, device=state.tokens.device) + (L - l_max)  # (H, l_max)
    index = state.parents[:, None, None] * (H * L) + place  # (rows, H, l_max)
    table = state.tokens.reshape(P * H * L, R)
    return table.index_select(0, index.reshape(-1)).reshape(rows, H, l_max, R)
