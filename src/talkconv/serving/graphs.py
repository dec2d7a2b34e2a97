"""The two graphs of an exported network, as PyTorch modules that torch.onnx can trace.

Names of inputs and outputs, here and in the runtime (P rows before a step, B sentences of n beams,
t tokens a step, S tokens of source):

    encoder.onnx   tokens (B, S), mask (B, S)
                   -> keys_i, values_i (B, H, S, R) for each layer i of the decoder; reach
    decoder.onnx   tokens (B, n, t), parents (B, n), start (B,), kept (k,), ranks (m,),
                   forbidden_rows (f,), forbidden_words (f,), state_i (P, H, L, R);
                   of a translation mask (B, S), keys_i, values_i; of a language model mask (B, t)
                   -> logits (B * n, k, V), best_scores and best_words (B * n * k, m),
                      new_state_i (B * n, H, l_max + t, R); reach

`kept` are the places of those of the t tokens whose next words are wanted; of `ranks` the length
alone counts, the number of best words. Masks are 0 at padding. `reach` (layers, 2, rows, T, H) is
how many tokens to the left and to the right each token looked at.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from talkconv.layers.cross_attention import ProjectedStates
from talkconv.layers.talk_conv import TaLKConv
from talkconv.models.base import TaLKConvPreTrainedModel
from talkconv.models.cache import TaLKConvCache
from talkconv.serving.traced_mixer import TracedMixer, TracedState


def traceable(network: TaLKConvPreTrainedModel) -> Any:
    """Return a copy of the network, in evaluation mode, whose mixers can be traced."""
    _check_mixers(network)
    twin: Any = copy.deepcopy(network).float().cpu().eval()
    for stack in _stacks(twin):
        for block in stack.layers:
            block.mixer_unit.mixer = TracedMixer(block.mixer_unit.mixer)
    return twin


def _stacks(network: Any) -> list[Any]:
    both = network.config.is_encoder_decoder
    return [network.encoder, network.decoder] if both else [network.decoder]


def _check_mixers(network: Any) -> None:
    for stack in _stacks(network):
        for block in stack.layers:
            if not isinstance(block.mixer_unit.mixer, TaLKConv):
                raise ValueError(
                    "export needs networks whose mixers are all 'talk', whose state is of constant "
                    f"size, got a {type(block.mixer_unit.mixer).__name__}"
                )


class EncoderGraph(nn.Module):
    """Reads a source, and projects it for each layer of the decoder."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        states = self.network.encoder(tokens, mask).last_hidden_state
        projected = self.network.decoder.project(states, mask == 0)
        pairs = [part for each in projected for part in (each.keys, each.values)]
        return (*pairs, _reach(self.network.encoder))

    def names(self) -> tuple[list[str], list[str]]:
        """Return the names of inputs and outputs."""
        return ["tokens", "mask"], [*_projected_names(self.network), "reach"]

    def example(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return inputs to trace with, and which of their dimensions may have any size."""
        tokens = torch.full((2, 3), 3)
        sizes = {0: Dim("sentences"), 1: Dim("source")}
        return (tokens, torch.ones_like(tokens)), (sizes, sizes)


class DecoderGraph(nn.Module):
    """Reads the next tokens of each beam, and finds the words that may follow."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(
        self,
        tokens: Tensor,
        parents: Tensor,
        start: Tensor,
        kept: Tensor,
        ranks: Tensor,
        forbidden_rows: Tensor,
        forbidden_words: Tensor,
        mask: Tensor,
        states: Sequence[Tensor],
        projected: Sequence[Tensor],
    ) -> tuple[Tensor, ...]:
        B, n, t = tokens.shape
        begin = start[:, None].expand(B, n).reshape(B * n)
        cache = TaLKConvCache(
            [TracedState(each, parents.reshape(B * n), begin) for each in states],
            _projected(projected, mask),
        )
        padding = None if projected else (mask == 0)[:, None].expand(B, n, t).reshape(B * n, t)
        hidden = self.network.decoder(tokens.reshape(B * n, t), padding_mask=padding, cache=cache)
        logits = self._logits(hidden[-1].index_select(1, kept))  # (B * n, k, V)
        scores = logits.flatten(0, 1).log_softmax(dim=-1)
        lowest = torch.full_like(forbidden_rows, 0, dtype=scores.dtype) - torch.inf
        scores = scores.index_put((forbidden_rows, forbidden_words), lowest)
        best = scores.topk(ranks.shape[0], dim=-1)
        new = [state.tokens for state in cache.states]
        return (logits, best.values, best.indices, *new, _reach(self.network.decoder))

    def _logits(self, hidden: Tensor) -> Tensor:
        adaptive = getattr(self.network, "adaptive_softmax", None)
        logits: Tensor = (
            self.network.lm_head(hidden) if adaptive is None else adaptive.log_prob(hidden)
        )
        return logits

    def names(self) -> tuple[list[str], list[str]]:
        """Return the names of inputs and outputs."""
        layers = range(self.network.config.num_layers)
        step = ["tokens", "parents", "start", "kept", "ranks", "forbidden_rows", "forbidden_words"]
        states = [f"state_{layer}" for layer in layers]
        outputs = ["logits", "best_scores", "best_words", *(f"new_{name}" for name in states)]
        return [*step, "mask", *states, *_projected_names(self.network)], [*outputs, "reach"]

    def example(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return inputs to trace with, and which of their dimensions may have any size.

        All sizes differ, and none is 1: the tracer would take equal ones for the same, and ones for
        constants.
        """
        config = self.network.config
        B, n, t, P, S = 2, 3, 4, 5, 7
        sentences, beams, tokens, source = map(Dim, ("sentences", "beams", "tokens", "source"))
        states = [
            torch.zeros(P, config.heads, l_max + 2, config.dim // config.heads)
            for l_max in config.decoder_l_max
        ]
        state_sizes = [{0: Dim("rows"), 2: Dim(f"past_{i}")} for i in range(len(states))]
        projected, mask, mask_sizes = [], torch.ones(B, t, dtype=torch.long), tokens
        if config.is_encoder_decoder:
            heads = config.attention_heads
            mask, mask_sizes = torch.ones(B, S, dtype=torch.long), source
            projected = [
                torch.randn(B, heads, S, config.dim // heads) for _ in range(2 * config.num_layers)
            ]
        inputs = (
            torch.full((B, n, t), 3),
            torch.arange(B)[:, None].expand(B, n).contiguous(),
            torch.zeros(B, dtype=torch.long),
            torch.tensor([0, t - 1]),
            torch.arange(6),
            torch.tensor([0, 1]),
            torch.tensor([3, 4]),
            mask,
            states,
            projected,
        )
        sizes = (
            {0: sentences, 1: beams, 2: tokens},
            {0: sentences, 1: beams},
            {0: sentences},
            {0: Dim("kept")},
            {0: Dim("ranks", max=config.vocab_size)},
            *[{0: Dim("forbidden")}] * 2,
            {0: sentences, 1: mask_sizes},
            state_sizes,
            [{0: sentences, 2: source}] * len(projected),
        )
        return inputs, sizes


def _projected(projected: Sequence[Tensor], mask: Tensor) -> list[ProjectedStates] | None:
    exists = (mask != 0)[:, None, None]  # (B, 1, 1, S)
    pairs = zip(projected[::2], projected[1::2], strict=True)
    return [ProjectedStates(keys, values, exists) for keys, values in pairs] or None


def _reach(stack: Any) -> Tensor:
    """Return how far the tokens of the last call looked: (layers, 2, rows, T, H)."""
    found = [block.mixer_unit.mixer.reach for block in stack.layers]
    return torch.stack([torch.stack(pair) for pair in found])


def _projected_names(network: Any) -> list[str]:
    layers = range(network.config.num_layers if network.config.is_encoder_decoder else 0)
    return [f"{part}_{layer}" for layer in layers for part in ("keys", "values")]
