"""TaLKConvGenerativeModel: the generation of text, which two of our networks share."""

from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, GenerationMixin, StoppingCriteriaList

from talkconv.models.base import TaLKConvPreTrainedModel
from talkconv.models.beam_generate import (
    can_search,
    is_sharded,
    merged_settings,
    search,
    with_length,
)
from talkconv.models.cache import TaLKConvCache
from talkconv.models.search_step import NetworkStep
from talkconv.models.stack import Decoder
from talkconv.models.stop_strings import StopStrings
from talkconv.search.beam_search import BeamSettings, beam_search
from talkconv.search.hypotheses import Hypotheses
from talkconv.search.network import Ints


class TaLKConvGenerativeModel(TaLKConvPreTrainedModel, GenerationMixin):
    """A network that writes text: it has generate(), and a search can call it."""

    # Assisted generation may remove more tokens than a state of constant size can.
    _is_stateful = True

    decoder: Decoder

    def generate(  # type: ignore[override]
        self,
        inputs: Tensor | None = None,
        generation_config: GenerationConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """Generate as transformers does, with this network's cache and, if it can, its beam search.

        transformers documents the arguments.
        """
        # transformers would pass a tokenizer on to forward()
        tokenizer = kwargs.pop("tokenizer", None)
        defaults: Any = self.generation_config
        kwargs = with_length(defaults, generation_config, kwargs)
        settings, others = merged_settings(defaults, generation_config, kwargs)
        if settings.cache_implementation is not None:
            raise ValueError(
                "cache_implementation must be left unset: this network has a cache of its own, "
                f"of constant size; got {settings.cache_implementation!r}"
            )
        if settings.stop_strings and tokenizer is not None:
            kwargs |= _stop_strings(settings.stop_strings, tokenizer, kwargs)
        elif can_search(settings, others, self.config.vocab_size) and not is_sharded(self):
            kwargs["custom_generate"] = search
        if kwargs.get("past_key_values") is None and settings.use_cache is not False:
            kwargs["past_key_values"] = TaLKConvCache()
        # transformers types this method for models of its own
        return super().generate(inputs, generation_config, **kwargs)  # type: ignore[misc]

    def beam_search(
        self, input_ids: Tensor, settings: BeamSettings, attention_mask: Tensor | None = None
    ) -> Hypotheses:
        """Return what generate() finds with beams, with scores and a limit for each sentence.

        input_ids (B, S) are sources, or for a language model prompts, padded on the left.
        """
        if self.config.vocab_size < settings.kept:
            most = self.config.vocab_size * settings.num_beams // settings.kept
            raise ValueError(
                f"num_beams must be at most {most} with {self.config.vocab_size} words, "
                f"got {settings.num_beams}"
            )
        mask = None if attention_mask is None else attention_mask.cpu().numpy()
        prompt, step = self.begin_search(input_ids.cpu().numpy(), mask)
        return beam_search(step, prompt, settings)

    def begin_search(
        self, input_ids: Ints, attention_mask: Ints | None = None
    ) -> tuple[Ints, NetworkStep]:
        """Return the prompts (B, p) of a search and the step that continues them.

        See talkconv.search.network.Network.
        """
        return input_ids, self.search_step(len(input_ids), self._on_device(attention_mask))

    def search_step(
        self, batch: int, attention_mask: Tensor | None, encoder_states: Tensor | None = None
    ) -> NetworkStep:
        """Return this network as a search calls it, before the first token."""
        # the cache remembers padding, which stands in the prompt alone
        prompt_inputs = dict(attention_mask=attention_mask)
        return NetworkStep(self, self.empty_cache(batch), "input_ids", {}, prompt_inputs)

    def _on_device(self, values: Ints | None) -> Tensor | None:
        return None if values is None else torch.from_numpy(values).to(self.device)

    def empty_cache(self, batch: int, *, rollback: int = 0) -> TaLKConvCache:
        """Return the cache before the first token; crop() can take back `rollback` tokens."""
        return self.decoder.empty_cache(batch, rollback=rollback)


def _stop_strings(
    strings: str | list[str], tokenizer: Any, kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the keywords that put our criterion in place of transformers' own."""
    stop = StopStrings(tokenizer, [strings] if isinstance(strings, str) else strings)
    criteria = [*(kwargs.get("stopping_criteria") or []), stop]
    return {"stop_strings": None, "stopping_criteria": StoppingCriteriaList(criteria)}
