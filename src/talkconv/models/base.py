"""What both networks are to transformers: how they start, what they share, how they remember."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, GenerationMixin, PreTrainedModel
from transformers import initialization as init

from talkconv.layers.adaptive import AdaptiveSoftmax
from talkconv.layers.light_conv import LightConv
from talkconv.models.beam_generate import (
    can_search,
    is_sharded,
    merged_settings,
    search,
    with_length,
)
from talkconv.models.cache import TaLKConvCache
from talkconv.models.configuration import TaLKConvConfig
from talkconv.models.search_step import NetworkStep
from talkconv.models.stack import Decoder
from talkconv.search.beam_search import BeamSettings, beam_search
from talkconv.search.hypotheses import Hypotheses
from talkconv.search.network import Ints


class TaLKConvPreTrainedModel(PreTrainedModel, GenerationMixin):
    """Saving, loading and starting of the networks; see the two of them."""

    config: TaLKConvConfig
    config_class = TaLKConvConfig
    supports_gradient_checkpointing = True
    # transformers then divides the loss by the labels of all accumulated batches
    accepts_loss_kwargs = True
    # a constant state cannot go back as far as assisted generation may ask
    _is_stateful = True
    _no_split_modules = ["EncoderBlock", "DecoderBlock"]  # noqa: RUF012

    decoder: Decoder

    def _init_weights(self, module: nn.Module) -> None:
        """As the authors start: Xavier-uniform layers, embeddings of variance 1 / channels."""
        if isinstance(module, nn.Linear):
            init.xavier_uniform_(module.weight)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=module.embedding_dim**-0.5)
            loaded = getattr(module.weight, "_is_hf_initialized", False)
            if module.padding_idx is not None and not loaded:
                init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, LightConv):
            init.xavier_uniform_(module.weight)
        elif isinstance(module, AdaptiveSoftmax):
            for words in module.words:
                init.normal_(words, std=words.shape[1] ** -0.5)
            for projection in module.projections:
                init.xavier_uniform_(projection)

    def get_input_embeddings(self) -> nn.Module:
        return self.decoder.embed_tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.decoder.embed_tokens = value

    def resize_token_embeddings(
        self,
        new_num_tokens: int | None = None,
        pad_to_multiple_of: int | None = None,
        mean_resizing: bool = True,
    ) -> nn.Embedding:
        """Change the vocabulary's size, where there is one vocabulary of ordinary embeddings."""
        two = self.config.is_encoder_decoder and not self.config.share_embeddings
        if two or self.config.adaptive_cutoffs:
            kind = "two vocabularies" if two else "adaptive embeddings"
            raise NotImplementedError(
                f"a network of {kind} cannot be resized: make a new one with its own sizes in the "
                "config (vocab_size, encoder_vocab_size, adaptive_cutoffs)"
            )
        self.config.encoder_vocab_size = None
        embedding: nn.Embedding = super().resize_token_embeddings(
            new_num_tokens, pad_to_multiple_of, mean_resizing
        )
        return embedding

    def generate(  # type: ignore[override]
        self,
        inputs: Tensor | None = None,
        generation_config: GenerationConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """Generate as transformers does, with this network's cache and, if it can, its beam search.

        transformers documents the arguments.
        """
        defaults: Any = self.generation_config
        kwargs = with_length(defaults, generation_config, kwargs)
        settings, others = merged_settings(defaults, generation_config, kwargs)
        if settings.cache_implementation is not None:
            raise ValueError(
                "cache_implementation must be left unset: this network has a cache of its own, "
                f"of constant size; got {settings.cache_implementation!r}"
            )
        if can_search(settings, others, self.config.vocab_size) and not is_sharded(self):
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
        """The cache before the first token; crop() can then take back up to `rollback` tokens."""
        return TaLKConvCache(self.decoder.empty_states(batch, rollback=rollback))

    def _cache(self, cache: Any, use_cache: bool | None, rows: int) -> TaLKConvCache | None:
        """Return the cache to use for `rows` rows; one without states yet gets them here."""
        if cache is None:
            return self.empty_cache(rows) if use_cache else None
        if not isinstance(cache, TaLKConvCache):
            raise TypeError(
                "past_key_values must come from this network (model.empty_cache(batch), or an "
                f"earlier output), got {type(cache).__name__}"
            )
        if not cache.states:
            cache.states = self.decoder.empty_states(rows)
        return cache


def padding_of(attention_mask: Tensor | None, tokens: int) -> Tensor | None:
    """(B, T), True at padding, of the last `tokens` columns of a mask that is 0 at padding."""
    return None if attention_mask is None else attention_mask[:, -tokens:] == 0


def hidden_of(states: tuple[Tensor, ...], wanted: bool | None) -> Any:
    """All hidden states, if they are wanted."""
    return states if wanted else None
