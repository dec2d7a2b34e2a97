"""Stacks of blocks: the encoder, and the decoder that both networks share."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any, cast

from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from talkconv.layers.adaptive import AdaptiveInput
from talkconv.layers.blocks import BlockSettings, DecoderBlock, EncoderBlock
from talkconv.layers.cross_attention import ProjectedStates
from talkconv.layers.dropout import Dropout
from talkconv.layers.positions import SinusoidalPositions
from talkconv.models.cache import TaLKConvCache
from talkconv.models.configuration import TaLKConvConfig

# the settings that all blocks of a network share
_SHARED_SETTINGS = [field.name for field in fields(BlockSettings) if field.name != "mixer"]


class Stack(nn.Module):
    """Embeds tokens, adds positions, and runs the blocks of `layers` and a last norm."""

    # the name that transformers has for the input
    main_input_name = "input_ids"
    layers: nn.ModuleList

    def __init__(self, config: TaLKConvConfig, vocab_size: int) -> None:
        super().__init__()
        self.embed_tokens = _embedding(config, vocab_size)
        self.embed_scale = math.sqrt(config.dim)
        self.embed_positions = SinusoidalPositions(config.dim)
        self.dropout = Dropout(config.dropout)
        self.norm = nn.LayerNorm(config.dim) if config.final_norm else nn.Identity()
        # transformers sets these two
        self.gradient_checkpointing = False
        self._gradient_checkpointing_func: Callable[..., Any] | None = None

    def embed(
        self,
        input_ids: Tensor | None,
        inputs_embeds: Tensor | None,
        padding_mask: Tensor | None,
        start: int | Tensor = 0,
    ) -> Tensor:
        """Return the input of the first block (B, T, dim).

        inputs_embeds (B, T, dim) replace embed_tokens(input_ids). `start` is the number of tokens
        before these without padding: one number, or one per row (B,).
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give either input_ids or inputs_embeds, and not both")
        x = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        positioned = self.embed_positions(
            x * self.embed_scale, start=start, padding_mask=padding_mask
        )
        embedded: Tensor = self.dropout(positioned)
        return embedded

    def run(self, block: nn.Module, x: Tensor, **kwargs: Any) -> Any:
        """Run one block. With gradient checkpointing, backward computes its results again."""
        if self.gradient_checkpointing and self.training:
            assert self._gradient_checkpointing_func is not None

            def call(x: Tensor, *values: Any) -> Any:
                return block(x, **dict(zip(kwargs, values, strict=True)))

            # Reentrant checkpoints give gradients to positional arguments only.
            return self._gradient_checkpointing_func(call, x, *kwargs.values())
        return block(x, **kwargs)


class Encoder(Stack):
    """Encodes whole sentences: input_ids (B, S) -> states (B, S, dim)."""

    def __init__(self, config: TaLKConvConfig) -> None:
        super().__init__(config, config.source_vocab_size)
        assert config.encoder_r_max is not None
        windows = zip(config.encoder_l_max, config.encoder_r_max, strict=True)
        mixers = _each_layer(config.encoder_mixer, len(config.encoder_l_max))
        self.pad_token_id = config.pad_token_id
        self.layers = nn.ModuleList(
            EncoderBlock(
                config.dim,
                config.heads,
                config.ff_dim,
                l_max,
                r_max,
                mixer=mixer,
                **_shared(config),
            )
            for (l_max, r_max), mixer in zip(windows, mixers, strict=True)
        )

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> BaseModelOutput:
        """Encode input_ids (B, S), or inputs_embeds (B, S, dim) that stand for them.

        attention_mask (B, S) is 0 at padding; without it padding is where pad_token_id is. The last
        two arguments are there because transformers passes them.
        """
        padding_mask = self.padding_mask(input_ids, attention_mask)
        x = self.embed(input_ids, inputs_embeds, padding_mask)
        hidden: list[Any] = [x]
        for block in self.layers:
            x = self.run(block, x, src_key_padding_mask=padding_mask)
            hidden.append(x)
        hidden[-1] = self.norm(x)
        return BaseModelOutput(
            last_hidden_state=hidden[-1],
            hidden_states=tuple(hidden) if output_hidden_states else None,
        )

    def padding_mask(
        self, input_ids: Tensor | None, attention_mask: Tensor | None
    ) -> Tensor | None:
        """Return the padding of a batch (B, S), True at padding, or None if it is unknown."""
        if attention_mask is not None:
            return attention_mask == 0
        if input_ids is None or self.pad_token_id is None:
            return None
        return input_ids == self.pad_token_id


class Decoder(Stack):
    """Reads input_ids (B, T) -> states (B, T, dim), all at once or, with a cache, the next ones."""

    def __init__(self, config: TaLKConvConfig) -> None:
        super().__init__(config, config.vocab_size)
        mixers = _each_layer(config.decoder_mixer, config.num_layers)
        self.layers = nn.ModuleList(
            DecoderBlock(
                config.dim,
                config.heads,
                config.ff_dim,
                l_max,
                encoder_dim=config.dim if config.is_encoder_decoder else None,
                attention_heads=config.attention_heads,
                mixer=mixer,
                **_shared(config),
            )
            for l_max, mixer in zip(config.decoder_l_max, mixers, strict=True)
        )

    @property
    def blocks(self) -> list[DecoderBlock]:
        return cast(list[DecoderBlock], self.layers)

    def empty_cache(self, batch: int, *, rollback: int = 0) -> TaLKConvCache:
        """Return the cache before the first token; crop() can take back `rollback` tokens."""
        return TaLKConvCache(self._empty_states(batch, rollback=rollback))

    def ready_cache(self, cache: Any, use_cache: bool | None, rows: int) -> TaLKConvCache | None:
        """Return the cache to use for `rows` rows; one without states yet gets them here."""
        if cache is None:
            return self.empty_cache(rows) if use_cache else None
        if not isinstance(cache, TaLKConvCache):
            raise TypeError(
                "past_key_values must come from this network (model.empty_cache(batch), or an "
                f"earlier output), got {type(cache).__name__}"
            )
        if not cache.states:
            cache.states = self._empty_states(rows)
        return cache

    def _empty_states(self, batch: int, *, rollback: int = 0) -> list[Any]:
        """Return the state of each block before the first token."""
        # Ask the embedding for dtype and device, since quantized blocks have no parameters.
        embedding = next(self.embed_tokens.parameters())
        place: dict[str, Any] = dict(dtype=embedding.dtype, device=embedding.device)
        return [block.empty_state(batch, rollback=rollback, **place) for block in self.blocks]

    def forward(
        self,
        input_ids: Tensor | None = None,
        padding_mask: Tensor | None = None,
        encoder_states: Tensor | None = None,
        encoder_padding_mask: Tensor | None = None,
        cache: TaLKConvCache | None = None,
        inputs_embeds: Tensor | None = None,
        attentions: list[Tensor] | None = None,
    ) -> tuple[Tensor, ...]:
        """Return the states after the embedding and after each block; the last norm is applied.

        padding_mask (B, T) and encoder_padding_mask (B, S) are True at padding. A cache is updated
        in place. It projects encoder_states (B, S, dim) at its first call alone. The weights of
        each block over the encoder (B, H, T, S) are appended to `attentions`.
        """
        start = 0 if cache is None else cache.tokens
        x = self.embed(input_ids, inputs_embeds, padding_mask, start)
        if cache is None:
            hidden = self._all_at_once(
                x,
                padding_mask=padding_mask,
                encoder_states=encoder_states,
                encoder_padding_mask=encoder_padding_mask,
                attentions=attentions,
            )
        else:
            if cache.projected is None and encoder_states is not None:
                cache.projected = self.project(encoder_states, encoder_padding_mask)
            hidden = self._next_tokens(x, padding_mask, cache, attentions)
        return (*hidden[:-1], self.norm(hidden[-1]))

    def project(self, encoder_states: Tensor, padding_mask: Tensor | None) -> list[ProjectedStates]:
        """Return what each block attends to: encoder_states (B, S, dim), padding_mask (B, S)."""
        attentions = [block.cross_attention for block in self.blocks]
        return [
            part.project(encoder_states, padding_mask) for part in attentions if part is not None
        ]

    def _all_at_once(self, x: Tensor, **inputs: Any) -> list[Tensor]:
        hidden = [x]
        for block in self.layers:
            hidden.append(self.run(block, hidden[-1], **inputs))
        return hidden

    def _next_tokens(
        self,
        x: Tensor,
        padding_mask: Tensor | None,
        cache: TaLKConvCache,
        attentions: list[Tensor] | None,
    ) -> list[Tensor]:
        hidden = [x]
        for index, block in enumerate(self.blocks):
            projected = None if cache.projected is None else cache.projected[index]
            x, cache.states[index] = block(
                x,
                encoder_states=projected,
                padding_mask=padding_mask,
                state=cache.states[index],
                attentions=attentions,
            )
            hidden.append(x)
        if padding_mask is not None:
            cache.count_padding(padding_mask)
        return hidden


def _embedding(config: TaLKConvConfig, vocab_size: int) -> nn.Module:
    if config.adaptive_cutoffs:
        return AdaptiveInput(
            vocab_size,
            config.dim,
            config.adaptive_cutoffs,
            config.adaptive_factor,
            padding_idx=config.pad_token_id,
        )
    return nn.Embedding(vocab_size, config.dim, padding_idx=config.pad_token_id)


def _shared(config: TaLKConvConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in _SHARED_SETTINGS}


def _each_layer(mixer: Any, layers: int) -> list[str]:
    return [mixer] * layers if isinstance(mixer, str) else list(mixer)
