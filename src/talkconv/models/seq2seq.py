"""TaLKConvForConditionalGeneration: translation and summarization."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GenerationConfig, GenerationMixin
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.utils.generic import can_return_tuple

from talkconv.conventions import IGNORED_LABEL
from talkconv.models.base import TaLKConvPreTrainedModel, hidden_of, padding_of
from talkconv.models.configuration import TaLKConvConfig
from talkconv.models.loss import smoothed_cross_entropy
from talkconv.models.search_step import NetworkStep
from talkconv.models.stack import Decoder, Encoder
from talkconv.search.network import Ints


class TaLKConvForConditionalGeneration(TaLKConvPreTrainedModel, GenerationMixin):
    """An encoder of whole sentences, and a decoder that writes another one.

    >>> config = TaLKConvConfig(vocab_size=20, dim=8, heads=2, ff_dim=16)
    >>> model = TaLKConvForConditionalGeneration(config).eval()
    >>> model.generate(torch.tensor([[5, 9, 2]]), num_beams=3, max_new_tokens=4).shape[0]
    1
    """

    def __init__(self, config: TaLKConvConfig) -> None:
        super().__init__(config)
        if not config.is_encoder_decoder:
            raise ValueError(
                "this network needs encoder layers: encoder_l_max is empty. "
                "TaLKConvForCausalLM is the one without"
            )
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.lm_head = nn.Linear(config.dim, config.vocab_size, bias=False)
        self._tied_weights_keys = {"lm_head.weight": "decoder.embed_tokens.weight"}
        if config.share_embeddings:
            self._tied_weights_keys["encoder.embed_tokens.weight"] = "decoder.embed_tokens.weight"
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
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        logits_to_keep: int = 0,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Seq2SeqLMOutput:
        """input_ids (B, S), decoder_input_ids (B * n, T) -> logits (B * n, T, vocab_size).

        Masks are 0 at padding; without attention_mask, padding is where the pad token is. n beams
        of a sentence are adjacent rows. With labels (B, T) there is a loss, and the decoder's input
        is the labels one step later.
        """
        if labels is not None and decoder_input_ids is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        if decoder_input_ids is None:
            raise ValueError("give decoder_input_ids, or labels to make them from")
        padding_mask = self.encoder.padding_mask(input_ids, attention_mask)
        encoded = self._encode(input_ids, attention_mask, encoder_outputs, output_hidden_states)
        cache: Any = self._cache(past_key_values, use_cache, decoder_input_ids.shape[0])
        hidden = self.decoder(
            decoder_input_ids,
            padding_mask=padding_of(decoder_attention_mask, decoder_input_ids.shape[1]),
            encoder_states=encoded.last_hidden_state,
            encoder_padding_mask=padding_mask,
            cache=cache,
        )
        logits = self.lm_head(hidden[-1][:, -logits_to_keep:])
        return Seq2SeqLMOutput(
            loss=None if labels is None else self._loss(logits, labels, num_items_in_batch),
            logits=logits,
            past_key_values=cache,
            decoder_hidden_states=hidden_of(hidden, output_hidden_states),
            encoder_last_hidden_state=encoded.last_hidden_state,
            encoder_hidden_states=encoded.hidden_states,
        )

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """The labels one step later, after the token that every sentence starts with."""
        start, pad = self.config.decoder_start_token_id, self.config.pad_token_id
        if start is None or pad is None:
            raise ValueError(
                "labels need decoder_start_token_id and pad_token_id in the config, "
                f"got {start} and {pad}"
            )
        tokens = labels.masked_fill(labels == IGNORED_LABEL, pad)
        return F.pad(tokens[:, :-1], (1, 0), value=start)

    def _encode(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None,
        outputs: BaseModelOutput | tuple[Any, ...] | None,
        output_hidden_states: bool | None,
    ) -> BaseModelOutput:
        if isinstance(outputs, BaseModelOutput):
            return outputs
        if outputs is not None:
            return BaseModelOutput(last_hidden_state=outputs[0])
        if input_ids is None:
            raise ValueError("give input_ids, or encoder_outputs of an earlier call")
        encoded: BaseModelOutput = self.encoder(input_ids, attention_mask, output_hidden_states)
        return encoded

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
        states = self._encode(tokens, mask, None, None).last_hidden_state
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
        """Generate as TaLKConvPreTrainedModel does; without a mask, padding is the pad token."""
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
