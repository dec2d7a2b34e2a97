"""One pass through an encoder and a decoder, with or without a head behind them."""

from typing import Any

from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqModelOutput

from talkconv.models.base import batch_of, padding_of
from talkconv.models.stack import Decoder, Encoder


def encode_and_decode(
    encoder: Encoder,
    decoder: Decoder,
    *,
    input_ids: Tensor | None,
    attention_mask: Tensor | None,
    inputs_embeds: Tensor | None,
    encoder_outputs: BaseModelOutput | tuple[Any, ...] | None,
    decoder_input_ids: Tensor | None,
    decoder_attention_mask: Tensor | None,
    decoder_inputs_embeds: Tensor | None,
    past_key_values: Any,
    use_cache: bool | None,
    output_attentions: bool,
    output_hidden_states: bool,
) -> Seq2SeqModelOutput:
    """Return the states of the decoder (B * n, T, dim), and what else is wanted.

    The sources are input_ids (B, S), inputs_embeds (B, S, dim), or encoder_outputs of an earlier
    call; the targets are decoder_input_ids (B * n, T) or decoder_inputs_embeds (B * n, T, dim).
    """
    if decoder_input_ids is None and decoder_inputs_embeds is None:
        raise ValueError("give decoder_input_ids, or labels to make them from")
    rows, tokens = batch_of(decoder_input_ids, decoder_inputs_embeds)
    padding_mask = encoder.padding_mask(input_ids, attention_mask)
    if encoder_outputs is None:
        encoder_outputs = encode(
            encoder, input_ids, attention_mask, inputs_embeds, output_hidden_states
        )
    encoded = _as_output(encoder_outputs)
    cache = decoder.ready_cache(past_key_values, use_cache, rows)
    attentions: list[Tensor] | None = [] if output_attentions else None
    hidden = decoder(
        decoder_input_ids,
        padding_mask=padding_of(decoder_attention_mask, tokens),
        encoder_states=encoded.last_hidden_state,
        encoder_padding_mask=padding_mask,
        cache=cache,
        inputs_embeds=decoder_inputs_embeds,
        attentions=attentions,
    )
    return Seq2SeqModelOutput(
        last_hidden_state=hidden[-1],
        # transformers' type names a cache of keys and values, but ours is another kind of cache
        past_key_values=cache,  # type: ignore[arg-type]
        decoder_hidden_states=hidden if output_hidden_states else None,
        cross_attentions=None if attentions is None else tuple(attentions),  # type: ignore[arg-type]
        encoder_last_hidden_state=encoded.last_hidden_state,
        encoder_hidden_states=encoded.hidden_states,
    )


def encode(
    encoder: Encoder,
    input_ids: Tensor | None,
    attention_mask: Tensor | None,
    inputs_embeds: Tensor | None = None,
    output_hidden_states: bool = False,
) -> BaseModelOutput:
    """Run the encoder on the sources. Raise a ValueError if there are none."""
    if input_ids is None and inputs_embeds is None:
        raise ValueError("give input_ids, or encoder_outputs of an earlier call")
    encoded: BaseModelOutput = encoder(
        input_ids, attention_mask, inputs_embeds, output_hidden_states
    )
    return encoded


def _as_output(outputs: BaseModelOutput | tuple[Any, ...]) -> BaseModelOutput:
    if isinstance(outputs, BaseModelOutput):
        return outputs
    return BaseModelOutput(last_hidden_state=outputs[0])
