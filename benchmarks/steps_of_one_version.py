"""Takes training steps with the talkconv of this Python, and answers on standard output.

    python benchmarks/steps_of_one_version.py RECIPE MIXER

Each line of standard input is a number of steps. The answer is a line of JSON with the seconds that
they took, the target tokens in them, and the most memory that the process has held so far.
benchmarks/training_step.py starts one such process for each version, so this file uses only names
that older versions have, too.
"""

import json
import resource
import sys
import time

try:
    from talkconv.training import freed_memory
except ImportError:  # an older version
    pass
else:
    # `talkconv train` does this before it imports torch.
    freed_memory.keep()

import torch
from torch import Tensor

from talkconv.models import TaLKConvConfig, TaLKConvForConditionalGeneration
from talkconv.training.recipe import read_recipe
from talkconv.training.schedule import make_optimizer

VOCABULARY = 5000
# Lengths of image captions in subwords.
SHORTEST, LONGEST = 6, 45


def main(name: str, mixer: str) -> None:
    """Train a recipe's network with a mixer, as many steps as each line of standard input says."""
    recipe = read_recipe(name, [f"model.mixer={mixer}"])
    torch.manual_seed(1)
    config = TaLKConvConfig(vocab_size=VOCABULARY, **recipe.model)
    network = TaLKConvForConditionalGeneration(config).train()
    optimizer = make_optimizer(network.parameters(), recipe.training)
    generator = torch.Generator().manual_seed(1)
    for line in sys.stdin:
        seconds, tokens = 0.0, 0
        for _ in range(int(line)):
            source, target = draw_batch(recipe.training.tokens, generator)
            begin = time.perf_counter()
            optimizer.zero_grad()
            network(source, labels=target).loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.training.clip)
            optimizer.step()
            seconds += time.perf_counter() - begin
            tokens += target.numel()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "tokens": tokens, "peak": peak}), flush=True)


def draw_batch(tokens: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return a source and a target (B, T) of random lengths, with at most `tokens` tokens each."""
    source, target = torch.randint(SHORTEST, LONGEST + 1, (2,), generator=generator).tolist()
    rows = max(1, tokens // max(source, target))
    # The first ids are those of special tokens, padding among them.
    return tuple(
        torch.randint(4, VOCABULARY, (rows, length), generator=generator)
        for length in (source, target)
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
