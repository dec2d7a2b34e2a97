"""What both networks are to transformers: how they start, what they share, how they remember."""

from typing import Any

from torch import Tensor, nn
from transformers import (
    EosTokenCriteria,
    GenerationConfig,
    GenerationMixin,
    LogitsProcessorList,
    MaxLengthCriteria,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    PreTrainedModel,
    StoppingCriteriaList,
)
from transformers import initialization as init

from talkconv.layers.adaptive import AdaptiveSoftmax
from talkconv.layers.light_conv import LightConv
from talkconv.models.beam_search import BeamSettings, Hypotheses, Step, beam_search
from talkconv.models.cache import TaLKConvCache
from talkconv.models.configuration import TaLKConvConfig
from talkconv.models.stack import Decoder


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

    def _prepare_cache_for_generation(  # type: ignore[override]
        self,
        generation_config: GenerationConfig,
        model_kwargs: dict[str, Any],
        generation_mode: Any,
        batch_size: int,
        max_cache_length: int,
    ) -> None:
        """`generate` asks for a cache: ours, unless the caller brings one or wants none."""
        if generation_config.cache_implementation is not None:
            raise ValueError(
                "cache_implementation must be left unset: this network has a cache of its own, "
                f"of constant size; got {generation_config.cache_implementation!r}"
            )
        if model_kwargs.get("past_key_values") is not None:
            model_kwargs["past_key_values"]._is_user_defined = True
        elif generation_config.use_cache is not False:
            rows = max(generation_config.num_beams, generation_config.num_return_sequences)
            model_kwargs["past_key_values"] = self.empty_cache(batch_size * rows)

    def _beam_search(
        self,
        input_ids: Tensor,
        logits_processor: LogitsProcessorList,
        stopping_criteria: StoppingCriteriaList,
        generation_config: GenerationConfig,
        synced_gpus: bool = False,
        **model_kwargs: Any,
    ) -> Any:
        """`generate` asks for beams: our search where it gives the same, else transformers'."""
        rules = _beam_rules(logits_processor)
        plain = (
            rules is not None
            and all(
                type(rule) in (MaxLengthCriteria, EosTokenCriteria) for rule in stopping_criteria
            )
            and not generation_config.do_sample
            and not generation_config.return_dict_in_generate
            and not synced_gpus
            and generation_config.prefill_chunk_size is None
            and self._is_fresh(model_kwargs)
        )
        settings = _beam_settings(generation_config, rules or {})
        if not plain or self.config.vocab_size < settings.kept:
            search: Any = super()._beam_search  # type: ignore[misc]
            return search(
                input_ids,
                logits_processor,
                stopping_criteria,
                generation_config,
                synced_gpus,
                **model_kwargs,
            )
        # rows came once per beam; the prompt is read once per sentence
        first = slice(None, None, settings.num_beams)
        step = self._beam_step(len(input_ids[first]), first, model_kwargs)
        found = beam_search(step, input_ids[first], settings).best(
            generation_config.num_return_sequences
        )
        return found.tokens.flatten(0, 1)[:, : int(found.lengths.max())]

    def beam_search(
        self, input_ids: Tensor, settings: BeamSettings, attention_mask: Tensor | None = None
    ) -> Hypotheses:
        """What `generate` finds with beams, with scores, and with limits of each sentence's own.

        input_ids (B, S) are sources, or for a language model prompts, padded on the left.
        """
        if self.config.vocab_size < settings.kept:
            raise ValueError(
                f"num_beams must be at most {self.config.vocab_size // settings.kept_per_beam} "
                f"with {self.config.vocab_size} words, got {settings.num_beams}"
            )
        prompt, inputs = self._beam_inputs(input_ids, attention_mask)
        return beam_search(self._beam_step(len(prompt), slice(None), inputs), prompt, settings)

    def _beam_inputs(
        self, input_ids: Tensor, attention_mask: Tensor | None
    ) -> tuple[Tensor, dict[str, Any]]:
        """What generation starts with, and what the decoder needs at each step."""
        return input_ids, dict(attention_mask=attention_mask)

    def _is_fresh(self, model_kwargs: dict[str, Any]) -> bool:
        """Whether generation starts at the first token, with a cache that is nobody else's."""
        cache = model_kwargs.get("past_key_values")
        known = {"past_key_values", "use_cache", "logits_to_keep", "attention_mask"}
        known |= {"encoder_outputs"} if self.config.is_encoder_decoder else set()
        given = {name for name, value in model_kwargs.items() if value is not None}
        own = isinstance(cache, TaLKConvCache) and not hasattr(cache, "_is_user_defined")
        return own and given <= known

    def _beam_step(self, batch: int, first: slice, model_kwargs: dict[str, Any]) -> Step:
        """The network as beam search sees it: next tokens and their parents to logits."""
        cache = self.empty_cache(batch)
        mask = model_kwargs.get("attention_mask")
        inputs: dict[str, Any] = dict(past_key_values=cache, logits_to_keep=1)
        if self.config.is_encoder_decoder:
            inputs |= dict(encoder_outputs=model_kwargs["encoder_outputs"], attention_mask=mask)
        name = "decoder_input_ids" if self.config.is_encoder_decoder else "input_ids"

        def step(tokens: Tensor, parents: Tensor | None) -> Tensor:
            prompt = {}
            if parents is not None:
                cache.reorder_cache(parents)
            elif mask is not None and not self.config.is_encoder_decoder:
                # the cache remembers padding, which stands in the prompt alone
                prompt = dict(attention_mask=mask[first])
            logits: Tensor = self(**{name: tokens}, **inputs, **prompt).logits
            return logits[:, -1]

        return step

    def empty_cache(self, batch: int, *, rollback: int = 0) -> TaLKConvCache:
        """The cache before the first token; crop() can then take back up to `rollback` tokens."""
        return self.decoder.empty_cache(batch, rollback=rollback)

    def _cache(self, cache: Any, use_cache: bool | None, rows: int) -> TaLKConvCache | None:
        if cache is None:
            return self.empty_cache(rows) if use_cache else None
        if not isinstance(cache, TaLKConvCache):
            raise TypeError(
                "past_key_values must come from this network (model.empty_cache(batch), or an "
                f"earlier output), got {type(cache).__name__}"
            )
        return cache


def _beam_rules(processors: LogitsProcessorList) -> dict[str, Any] | None:
    """What these processors forbid, in words of BeamSettings; None if it is more than ours can."""
    rules = dict(min_length=0, no_repeat_ngram=0)
    for each in processors:
        if type(each) is NoRepeatNGramLogitsProcessor:
            rules["no_repeat_ngram"] = each.ngram_size
        elif type(each) is MinLengthLogitsProcessor:
            rules["min_length"] = max(rules["min_length"], each.min_length)
        elif type(each) is MinNewTokensLengthLogitsProcessor:
            least = each.prompt_length_to_skip + each.min_new_tokens
            rules["min_length"] = max(rules["min_length"], least)
        else:
            return None
    return rules


def _beam_settings(generation_config: GenerationConfig, rules: dict[str, Any]) -> BeamSettings:
    eos, pad = generation_config._eos_token_tensor, generation_config._pad_token_tensor
    filler = pad if pad is not None else eos[0] if eos is not None else 0
    return BeamSettings(
        num_beams=generation_config.num_beams,
        max_length=generation_config.max_length,
        eos=eos,
        pad=int(filler),
        length_penalty=generation_config.length_penalty,
        early_stopping=generation_config.early_stopping,
        **rules,
    )


def padding_of(attention_mask: Tensor | None, tokens: int) -> Tensor | None:
    """(B, T), True at padding, of the last `tokens` columns of a mask that is 0 at padding."""
    return None if attention_mask is None else attention_mask[:, -tokens:] == 0


def hidden_of(states: tuple[Tensor, ...], wanted: bool | None) -> Any:
    """All hidden states, if they are wanted."""
    return states if wanted else None
