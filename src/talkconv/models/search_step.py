"""The step of a search, computed by a network in PyTorch."""

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from talkconv.models.cache import TaLKConvCache
from talkconv.search.network import Floats, Forbidden, Ints

# Words are compared in groups of this many before the groups that may hold the best are sorted.
GROUP = 8


class NetworkStep:
    """Lets a network answer the calls of a search; see talkconv.search.network.Step.

    The network is called with the tokens as the keyword `tokens_name`, with `inputs` at every call,
    and with `prompt_inputs` at the first call.
    """

    def __init__(
        self,
        network: PreTrainedModel,
        cache: TaLKConvCache,
        tokens_name: str,
        inputs: dict[str, Any],
        prompt_inputs: dict[str, Any],
    ) -> None:
        self.network = network
        self.cache = cache
        self.tokens_name = tokens_name
        self.inputs = inputs
        self.prompt_inputs = prompt_inputs

    @torch.inference_mode()
    def best(
        self, tokens: Ints, parents: Ints | None, forbidden: Forbidden | None, k: int
    ) -> tuple[Floats, Ints]:
        """Return log-probabilities and words of the k best that may follow: (rows, k) each."""
        log_probs = self._log_probs(tokens, parents)
        if forbidden is not None:
            rows, words = map(self._tensor, forbidden)
            log_probs[rows, words] = -torch.inf
        values, best = top_of_rows(log_probs, k)
        return values.cpu().numpy(), best.cpu().numpy()

    @torch.inference_mode()
    def log_probs(self, tokens: Ints, parents: Ints | None) -> Floats:
        """Return the log-probabilities of all words (rows, V)."""
        return self._log_probs(tokens, parents).cpu().numpy()

    def _log_probs(self, tokens: Ints, parents: Ints | None) -> Tensor:
        inputs = {self.tokens_name: self._tensor(tokens), **self.inputs}
        if not self.cache.get_seq_length():
            inputs |= self.prompt_inputs
        elif parents is not None:
            self.cache.reorder_cache(self._tensor(parents))
        answer = self.network(**inputs, past_key_values=self.cache, logits_to_keep=1)
        log_probs: Tensor = answer.logits[:, -1].float().log_softmax(dim=-1)
        return log_probs

    def _tensor(self, values: Ints) -> Tensor:
        return torch.from_numpy(values).to(self.network.device)


def top_of_rows(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return x.topk(k), faster if rows are much longer than k: x (rows, V) -> (rows, k) each.

    The k best words lie in the k groups with the best maxima, so that only those are sorted.
    """
    groups = x.shape[1] // GROUP
    if groups < 4 * k:
        values, index = x.topk(k)
        return values, index
    # Group g holds columns g, g + groups, ..., so that the maxima are computed on whole rows.
    grouped = x[:, : groups * GROUP].unflatten(1, (GROUP, groups))
    chosen = grouped.amax(dim=1).topk(k, sorted=False).indices  # (rows, k)
    members = grouped.gather(2, chosen[:, None].expand(-1, GROUP, -1)).flatten(1)
    rest = x[:, groups * GROUP :]
    columns = (torch.arange(GROUP, device=x.device)[:, None] * groups + chosen[:, None]).flatten(1)
    last = torch.arange(groups * GROUP, x.shape[1], device=x.device).expand(x.shape[0], -1)
    values, at = torch.cat((members, rest), dim=1).topk(k)
    return values, torch.cat((columns, last), dim=1).gather(1, at)
