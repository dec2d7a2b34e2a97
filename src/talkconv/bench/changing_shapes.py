"""Peak memory of a training whose batches have changing shapes, each mixer in its own process.

Such a training needs more memory than a loop over one shape, because freed blocks of one shape do
not fit the next. The network and its batches are those of the Multi30k recipe.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from talkconv.bench.bars import Bar
from talkconv.bench.networks import LABELS, OURS
from talkconv.bench.own_process import run_alone
from talkconv.bench.peak_memory import peak_of_process
from talkconv.network_settings import MIXERS

RECIPE = "multi30k_de_en"
VOCABULARY = 5000
STEPS = 120
TOKENS = 2000
# Lengths of image captions in subwords.
SHORTEST, LONGEST = 6, 45


def peaks(steps: int = STEPS, tokens: int = TOKENS) -> dict[str, int | None]:
    """Return the peak bytes of a training with each mixer, in a process of its own."""
    return {mixer: run_alone(train, mixer, steps, tokens) for mixer in MIXERS}


def train(mixer: str, steps: int, tokens: int) -> int | None:
    """Train for some steps and return the most bytes that this process has held."""
    # transformers takes seconds to import, which commands without networks need not wait for.
    from talkconv.training.fit import build_model
    from talkconv.training.recipe import read_recipe
    from talkconv.training.schedule import make_optimizer

    recipe = read_recipe(RECIPE, [f"model.mixer={mixer}"])
    network = build_model(recipe, VOCABULARY).train()
    optimizer = make_optimizer(network.parameters(), recipe.training)
    for source, target in batches(steps, tokens):
        optimizer.zero_grad()
        network(source, labels=target).loss.backward()
        optimizer.step()
    return peak_of_process()


def batches(steps: int, tokens: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield sources and targets (B, T) of changing lengths, with at most `tokens` tokens each."""
    generator = torch.Generator().manual_seed(1)

    def draw(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=generator)

    for _ in range(steps):
        source, target = draw(SHORTEST, LONGEST + 1, 2).tolist()
        batch = max(1, tokens // max(source, target))
        # The first ids are those of special tokens, padding among them.
        yield draw(4, VOCABULARY, batch, source), draw(4, VOCABULARY, batch, target)


def bar_of(found: dict[str, int | None]) -> Bar | None:
    """Return the bar that TaLK takes no more memory than any other mixer.

    Return None if the system does not report peaks. The ratio is rounded to a hundredth, because
    peaks differ by about as much from run to run.
    """
    others = {mixer: peak for mixer, peak in found.items() if mixer != OURS and peak is not None}
    ours = found[OURS]
    if ours is None or not others:
        return None
    least = min(others, key=others.__getitem__)
    what = f"peak memory of training with changing shapes, over {LABELS[least]}"
    return Bar(what, round(ours / others[least], 2), 1.0, at_least=False)
