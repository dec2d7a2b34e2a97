"""Small random networks that the tests of models share."""

import torch
from torch import nn

from talkconv.models import (
    TaLKConvConfig,
    TaLKConvForCausalLM,
    TaLKConvForConditionalGeneration,
)

MIXERS = ["talk", "attention", "light", "dynamic"]
SIZES = dict(vocab_size=29, dim=16, heads=2, ff_dim=24, dropout=0.0, decoder_l_max=[2, 4, 3])


def seq2seq(**changes) -> TaLKConvForConditionalGeneration:
    settings = dict(SIZES, encoder_vocab_size=23, encoder_l_max=[1, 3], encoder_r_max=[1, 3])
    return _random(TaLKConvForConditionalGeneration(TaLKConvConfig(**{**settings, **changes})))


def language_model(**changes) -> TaLKConvForCausalLM:
    settings = dict(SIZES, encoder_l_max=[])
    return _random(TaLKConvForCausalLM(TaLKConvConfig(**{**settings, **changes})))


def tokens(B: int, T: int, seed: int = 0, vocab_size: int = 23) -> torch.Tensor:
    """Return random words (B, T), without special tokens."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, vocab_size, (B, T), generator=generator)


def _random(model: nn.Module) -> nn.Module:
    """Draw all parameters at random, so that a test fails if code ignores one of them."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model.eval()
