"""Steps of a language model late in a text: their time, and the bytes that its cache holds."""

from typing import Any

import torch

from talkconv.bench.measure import Run
from talkconv.layers.self_attention import KeyValueState

VOCABULARY = 10_000
MIXERS = ("talk", "attention")
SIZES_IN_WORDS = "d 512, ff 2 048, 6 layers, 8 heads, a vocabulary of 10 000"


def language_model_steps(
    tokens: int, dim: int = 512, ff_dim: int = 2048
) -> tuple[dict[str, Run], dict[str, int]]:
    """Return one step after `tokens` tokens for each mixer, and the bytes that its cache holds."""
    # transformers takes seconds to import, which other commands need not wait for.
    from talkconv.models import TaLKConvConfig, TaLKConvForCausalLM

    runs: dict[str, Run] = {}
    held: dict[str, int] = {}
    for mixer in MIXERS:
        torch.manual_seed(0)
        sizes: dict[str, Any] = dict(vocab_size=VOCABULARY, dim=dim, ff_dim=ff_dim, heads=8)
        config = TaLKConvConfig(**sizes, encoder_l_max=[], decoder_mixer=mixer)
        model: Any = TaLKConvForCausalLM(config)
        model.eval()
        cache = model.empty_cache(1, rollback=1)
        fill(model, cache, tokens)
        runs[mixer] = step_of(model, cache)
        runs[mixer]()
        held[mixer] = bytes_of(cache)
    return runs, held


@torch.no_grad()
def fill(model: Any, cache: Any, tokens: int, chunk: int = 1024) -> None:
    """Let a model read tokens. Attention gets random keys and values, as reading takes hours."""
    if model.config.decoder_mixer == "attention":
        R = model.config.dim // model.config.heads
        pairs = torch.randn(2, 1, model.config.heads, tokens, R)
        cache.states = [state.append(pairs, None) for state in cache.states]
        return
    for begin in range(0, tokens, chunk):
        words = torch.randint(4, VOCABULARY, (1, min(chunk, tokens - begin)))
        model(words, past_key_values=cache, logits_to_keep=1)


def step_of(model: Any, cache: Any) -> Run:
    """Return a run that reads one token and removes it again, so that it can be repeated."""
    word = torch.tensor([[4]])

    @torch.no_grad()
    def run() -> Any:
        logits = model(word, past_key_values=cache, logits_to_keep=1).logits
        cache.crop(-1)
        return logits

    return run


def bytes_of(cache: Any) -> int:
    """Return the bytes of all tensors in a cache."""
    tensors = []
    for state in cache.states:
        grows = isinstance(state, KeyValueState)
        tensors += [state.keys, state.values] if grows else [state.tokens]
    return sum(tensor.nbytes for tensor in tensors)
