"""Small networks, tokenizers and runs that the tests of evaluation share."""

from pathlib import Path

import torch

from talkconv.models.dictionary import SPECIALS, tokenizer_of
from talkconv.runs.card import RunCard
from talkconv.runs.generation_settings import GenerationSettings
from tests.models.cases import language_model, seq2seq

WORDS = [f"w{number}" for number in range(25)]
SMALL = GenerationSettings(num_beams=3, max_length=12)


def tokenizer(words=WORDS):
    return tokenizer_of([*SPECIALS, *words])


def translator(seed: int = 12, **changes):
    """Return a network that ends early, so that its outputs have many lengths."""
    torch.manual_seed(seed)
    model = seq2seq(encoder_vocab_size=29, **changes)
    model.lm_head.weight.data[2] += 0.3 * torch.randn(16)
    return model


def texts(count: int, seed: int = 0) -> list[str]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 12, (count,), generator=generator)
    return [
        " ".join(WORDS[int(i)] for i in torch.randint(25, (int(n),), generator=generator))
        for n in lengths
    ]


def make_run(folder: Path, model=None, *, names=("best",), **card) -> Path:
    """Write a run folder as training does."""
    model = model or translator()
    task = "translation" if model.config.is_encoder_decoder else "language_modelling"
    for name in names:
        model.save_pretrained(folder / name)
        tokenizer().save_pretrained(folder / name)
    RunCard(**{**dict(task=task, recipe="small", generation=SMALL), **card}).write(folder)
    return folder


__all__ = ["SMALL", "WORDS", "language_model", "make_run", "texts", "tokenizer", "translator"]
