"""A network that tells what it is writing while it is searched."""

from collections.abc import Callable

import numpy as np

from talkconv.search.network import Floats, Forbidden, Ints, Network, NetworkConfig, Step

# is called with the number of a sentence in its batch and the tokens of its best hypothesis so far
OnTokens = Callable[[int, list[int]], object]


class WatchedNetwork:
    """Passes all calls on to a network, and tells the best hypothesis of each sentence."""

    def __init__(self, network: Network, on_tokens: OnTokens) -> None:
        self._network = network
        self._on_tokens = on_tokens

    @property
    def config(self) -> NetworkConfig:
        return self._network.config

    def begin_search(
        self, input_ids: Ints, attention_mask: Ints | None
    ) -> tuple[Ints, "WatchedStep"]:
        """Begin a search that is watched; see talkconv.search.network.Network."""
        prompt, step = self._network.begin_search(input_ids, attention_mask)
        return prompt, WatchedStep(step, len(input_ids), self._on_tokens)


class WatchedStep:
    """Follows the rows of a search: the first row of a sentence is always its best hypothesis."""

    def __init__(self, step: Step, sentences: int, on_tokens: OnTokens) -> None:
        self._step = step
        self._sentences = sentences
        self._on_tokens = on_tokens
        # the tokens that each row has written; None before the prompt was read
        self._written: list[list[int]] | None = None

    def best(
        self, tokens: Ints, parents: Ints | None, forbidden: Forbidden | None, k: int
    ) -> tuple[Floats, Ints]:
        """Read tokens and return the best next words; see talkconv.search.network.Step."""
        self._follow(tokens, parents)
        return self._step.best(tokens, parents, forbidden, k)

    def log_probs(self, tokens: Ints, parents: Ints | None) -> Floats:
        """Read tokens and return all log-probabilities; see talkconv.search.network.Step."""
        self._follow(tokens, parents)
        return self._step.log_probs(tokens, parents)

    def _follow(self, tokens: Ints, parents: Ints | None) -> None:
        if self._written is None:
            self._written = [[] for _ in range(len(tokens))]
            return
        rows = np.arange(len(tokens)) if parents is None else parents
        before = self._written
        self._written = [
            [*before[parent], *new] for parent, new in zip(rows, tokens.tolist(), strict=True)
        ]
        beams = len(tokens) // self._sentences
        for sentence in range(self._sentences):
            self._on_tokens(sentence, self._written[sentence * beams])
