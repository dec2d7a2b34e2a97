"""TaLKConvModel: an encoder, a decoder, or both, without a head. It turns tokens into states."""

from typing import Any

from torch import Tensor
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPast,
    Seq2SeqModelOutput,
)
from transformers.utils.generic import can_return_tuple

from talkconv.models.base import (
    TaLKConvPreTrainedModel,
    batch_of,
    padding_of,
    refuse_attentions,
)
from talkconv.models.configuration import TaLKConvConfig
from talkconv.models.encoder_decoder import encode_and_decode
from talkconv.models.stack import Decoder, Encoder


class TaLKConvModel(TaLKConvPreTrainedModel):
    """The network of a config without its head, as AutoModel opens it.

    >>> config = TaLKConvConfig(vocab_size=20, dim=8, heads=2, ff_dim=16, decoder_l_max=[])
    >>> TaLKConvModel(config)(torch.tensor([[5, 9, 2]])).last_hidden_state.shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: TaLKConvConfig) -> None:
        super().__init__(config)
        self.encoder = Encoder(config) if config.has_encoder else None
        self.decoder = Decoder(config) if config.has_decoder else None
        self._tied_weights_keys = {}
        if config.share_embeddings and config.is_encoder_decoder:
            self._tied_weights_keys = {"decoder.embed_tokens.weight": "encoder.embed_tokens.weight"}
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple[Any, ...] | None = None,
        past_key_values: Any = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> BaseModelOutput | BaseModelOutputWithPast | Seq2SeqModelOutput:
        """Return the last states (B, T, dim): of the decoder, or of an encoder alone.

        Masks are 0 at padding. The arguments of a decoder that reads an encoder are those of
        TaLKConvForConditionalGeneration; other networks take input_ids or inputs_embeds alone.
        """
        attentions = self.wanted("output_attentions", output_attentions)
        hidden_states = self.wanted("output_hidden_states", output_hidden_states)
        if self.encoder is not None and self.decoder is not None:
            return encode_and_decode(
                self.encoder,
                self.decoder,
                input_ids=input_ids,
                attention_mask=attention_mask,
                inputs_embeds=inputs_embeds,
                encoder_outputs=encoder_outputs,
                decoder_input_ids=decoder_input_ids,
                decoder_attention_mask=decoder_attention_mask,
                decoder_inputs_embeds=decoder_inputs_embeds,
                past_key_values=past_key_values,
                use_cache=use_cache,
                output_attentions=attentions,
                output_hidden_states=hidden_states,
            )
        refuse_attentions(attentions)
        if self.encoder is not None:
            encoded: BaseModelOutput = self.encoder(
                input_ids, attention_mask, inputs_embeds, hidden_states
            )
            return encoded
        assert self.decoder is not None
        rows, tokens = batch_of(input_ids, inputs_embeds)
        cache = self.decoder.ready_cache(past_key_values, use_cache, rows)
        hidden = self.decoder(
            input_ids,
            padding_mask=padding_of(attention_mask, tokens),
            cache=cache,
            inputs_embeds=inputs_embeds,
        )
        return BaseModelOutputWithPast(
            last_hidden_state=hidden[-1],
            past_key_values=cache,
            hidden_states=hidden if hidden_states else None,
        )
