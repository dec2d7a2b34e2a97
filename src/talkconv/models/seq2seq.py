"""TaLKConvForConditionalGeneration: translation and summarization."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GenerationConfig
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.utils.generic import can_return_tuple

from talkconv.conventions import IGNORED_LABEL
from talkconv.models.configuration import TaLKConvConfig
from talkconv.models.encoder_decoder import encode, encode_and_decode
from talkconv.models.generative import TaLKConvGenerativeModel
from talkconv.models.loss import smoothed_cross_entropy
from talkconv.models.search_step import NetworkStep
from talkconv.models.stack import Decoder, Encoder
from talkconv.search.network import Ints


class TaLKConvForConditionalGeneration(TaLKConvGenerativeModel):
    """Translates or summarizes: an encoder reads a whole text, and a decoder writes another one.

    >>> config = TaLKConvConfig(vocab_size=20, dim=8, heads=2, ff_dim=16)
    >>> model = TaLKConvForConditionalGeneration(config).eval()
    >>> model.generate(torch.tensor([[5, 9, 2]]), num_beams=3, max_new_tokens=4).shape[0]
    1
    """

    def __init__(self, config: TaLKConvConfig) -> None:
        super().__init__(config)
        if not config.is_encoder_decoder:
            side = "decoder" if config.has_encoder else "encoder"
            other = "TaLKConvForCausalLM has none" if side == "encoder" else "TaLKConvModel may do"
            raise ValueError(f"this network needs {side} layers: {side}_l_max is empty. {other}")
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.lm_head = nn.Linear(config.dim, config.vocab_size, bias=False)
        table = f"{'encoder' if config.share_embeddings else 'decoder'}.embed_tokens.weight"
        self._tied_weights_keys = {"lm_head.weight": table}
        if config.share_embeddings:
            # stored under the encoder's name, so that an encoder alone can be loaded from the file
            self._tied_weights_keys["decoder.embed_tokens.weight"] = table
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
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        logits_to_keep: int = 0,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Seq2SeqLMOutput:
        """Read input_ids (B, S), decoder_input_ids (B * n, T) -> logits (B * n, T, vocab_size).

        inputs_embeds (B, S, dim) and decoder_inputs_embeds may stand for the ids. Masks are 0 at
        padding; without attention_mask, padding is where the pad token is. The n beams of a
        sentence are adjacent rows. With labels (B, T) there is a loss, and the decoder's input is
        the labels one step later. With output_attentions, cross_attentions has the weights of each
        decoder layer over the source (B * n, H, T, S), for example to align words; the mixers have
        windows instead of such weights.
        """
        if labels is not None and decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        found = encode_and_decode(
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
            output_attentions=self.wanted("output_attentions", output_attentions),
            output_hidden_states=self.wanted("output_hidden_states", output_hidden_states),
        )
        states: Any = found.last_hidden_state
        logits = self.lm_head(states[:, -logits_to_keep:])
        return Seq2SeqLMOutput(
            loss=None if labels is None else self._loss(logits, labels, num_items_in_batch),
            logits=logits,
            past_key_values=found.past_key_values,
            decoder_hidden_states=found.decoder_hidden_states,
            cross_attentions=found.cross_attentions,
            encoder_last_hidden_state=found.encoder_last_hidden_state,
            encoder_hidden_states=found.encoder_hidden_states,
        )

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Return the labels one step later, after the token that every sentence starts with."""
        start, pad = self.config.decoder_start_token_id, self.config.pad_token_id
        if start is None or pad is None:
            raise ValueError(
                "labels need decoder_start_token_id and pad_token_id in the config, "
                f"got {start} and {pad}"
            )
        tokens = labels.masked_fill(labels == IGNORED_LABEL, pad)
        return F.pad(tokens[:, :-1], (1, 0), value=start)

    @torch.inference_mode()
    def begin_search(
        self, input_ids: Ints, attention_mask: Ints | None = None
    ) -> tuple[Ints, NetworkStep]:
        """Encode the sources (B, S) and return the first tokens (B, 1) and the decoder's step."""
        first = self.config.decoder_start_token_id
        if first is None:
            raise ValueError("generation needs decoder_start_token_id in the config, got None")
        tokens = self._on_device(input_ids)
        mask = self._attention_mask(tokens, self._on_device(attention_mask))
        states = encode(self.encoder, tokens, mask).last_hidden_state
        start = np.full((len(input_ids), 1), first, dtype=np.int64)
        return start, self.search_step(len(input_ids), mask, states)

    def search_step(
        self, batch: int, attention_mask: Tensor | None, encoder_states: Tensor | None = None
    ) -> NetworkStep:
        inputs = dict(encoder_outputs=(encoder_states,), attention_mask=attention_mask)
        return NetworkStep(self, self.empty_cache(batch), "decoder_input_ids", inputs, {})

    def generate(  # type: ignore[override]
        self,
        inputs: Tensor | None = None,
        generation_config: GenerationConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """Generate as TaLKConvGenerativeModel does; without a mask, padding is the pad token."""
        tokens = kwargs.get("input_ids") if inputs is None else inputs
        # Only the encoder sees the tokens of the source, but the decoder needs the mask, too.
        kwargs["attention_mask"] = self._attention_mask(tokens, kwargs.get("attention_mask"))
        return super().generate(inputs, generation_config, **kwargs)

    def _attention_mask(self, tokens: Tensor | None, mask: Tensor | None) -> Tensor | None:
        """Return the mask of the source (B, S), 0 at padding, made from the tokens if need be."""
        padding_mask = self.encoder.padding_mask(tokens, mask)
        return None if padding_mask is None else (~padding_mask).long()

    def _loss(self, logits: Tensor, labels: Tensor, num_items: Tensor | int | None) -> Any:
        return smoothed_cross_entropy(
            logits,
            labels,
            label_smoothing=self.config.label_smoothing,
            pad_token_id=self.config.pad_token_id,
            num_items=num_items,
        )
