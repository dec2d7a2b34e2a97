"""Whole networks of one size with each mixer, and the runs of them that are timed."""

from typing import Any

import torch
from torch import Tensor

from talkconv.bench.measure import Run
from talkconv.network_settings import MIXERS

OURS = "talk"
# The names of the mixers as tables and pictures show them.
LABELS = dict(talk="TaLK", attention="self-attention", light="LightConv", dynamic="DynamicConv")
assert set(LABELS) == set(MIXERS)

# A language model of bytes. A softmax over many words would take most of the step and hide the
# difference between the mixers.
SIZES: dict[str, Any] = dict(
    vocab_size=260,  # 256 bytes and the special tokens
    dim=512,
    ff_dim=1024,
    heads=8,
    encoder_l_max=[],
    decoder_l_max=[3, 7, 15, 31, 31, 31],
    # With dropout inside the mixers, attention could not use its fused kernel.
    dropout=0.1,
)
SIZES_IN_WORDS = "d 512, ff 1 024, 6 layers, 8 heads, a vocabulary of bytes"


def language_model(mixer: str, **changes: Any) -> Any:
    """Return the language model with a mixer, with the initial weights of its seed."""
    # transformers takes seconds to import, which commands without networks need not wait for.
    from talkconv.models import TaLKConvConfig, TaLKConvForCausalLM

    torch.manual_seed(0)
    config = TaLKConvConfig(**{**SIZES, **changes}, decoder_mixer=mixer)
    return TaLKConvForCausalLM(config)


def training_step(mixer: str, tokens: int, length: int) -> Run:
    """Return a step on `tokens` random bytes in sequences of `length`: loss, gradients, Adam."""
    model = language_model(mixer).train()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    text = random_text(tokens // length, length)

    def step() -> float:
        optimizer.zero_grad()
        loss = model(text, labels=text).loss
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def encode_document(mixer: str, length: int) -> Run:
    """Return a run of an encoder of this size on one document, with windows on both sides."""
    from talkconv.models import TaLKConvConfig, TaLKConvForConditionalGeneration

    torch.manual_seed(0)
    windows = SIZES["decoder_l_max"]
    # The decoder is not run, so one layer is enough.
    sizes = {**SIZES, "encoder_l_max": windows, "decoder_l_max": windows[:1]}
    network: Any = TaLKConvForConditionalGeneration(TaLKConvConfig(**sizes, encoder_mixer=mixer))
    encoder = network.eval().encoder
    document = random_text(1, length)

    @torch.no_grad()
    def encode() -> Tensor:
        states: Tensor = encoder(document).last_hidden_state
        return states

    return encode


def random_text(batch: int, length: int) -> Tensor:
    """Return random bytes, (B, T). The first ids belong to special tokens and are not used."""
    return torch.randint(4, SIZES["vocab_size"], (batch, length))
