"""TaLKConvForConditionalGeneration: translation and summarization."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GenerationMixin
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.utils.generic import can_return_tuple

from talkconv.conventions import IGNORED_LABEL
from talkconv.models.base import TaLKConvPreTrainedModel, hidden_of, padding_of
from talkconv.models.configuration import TaLKConvConfig
from talkconv.models.loss import smoothed_cross_entropy
from talkconv.models.stack import Decoder, Encoder


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
            memory=encoded.last_hidden_state,
            memory_padding_mask=padding_mask,
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

    def _beam_inputs(
        self, input_ids: Tensor, attention_mask: Tensor | None
    ) -> tuple[Tensor, dict[str, Any]]:
        first = self.config.decoder_start_token_id
        if first is None:
            raise ValueError("generation needs decoder_start_token_id in the config, got None")
        padding_mask = self.encoder.padding_mask(input_ids, attention_mask)
        mask = None if padding_mask is None else (~padding_mask).long()
        encoded = self._encode(input_ids, mask, None, None)
        start = input_ids.new_full((len(input_ids), 1), first)
        return start, dict(encoder_outputs=encoded, attention_mask=mask)

    def _loss(self, logits: Tensor, labels: Tensor, num_items: Tensor | int | None) -> Any:
        return smoothed_cross_entropy(
            logits,
            labels,
            label_smoothing=self.config.label_smoothing,
            pad_token_id=self.config.pad_token_id,
            num_items=num_items,
        )

    def _prepare_text_encoder_decoder_kwargs_for_generation(
        self, inputs_tensor: Tensor, model_kwargs: dict[str, Any], *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        """Once generation has the encoder's states it forgets the tokens: note their padding."""
        padding_mask = self.encoder.padding_mask(inputs_tensor, model_kwargs.get("attention_mask"))
        if padding_mask is not None:
            model_kwargs["attention_mask"] = (~padding_mask).long()
        prepare: Any = super()._prepare_text_encoder_decoder_kwargs_for_generation  # type: ignore[misc]
        prepared: dict[str, Any] = prepare(inputs_tensor, model_kwargs, *args, **kwargs)
        return prepared

    def _expand_inputs_for_generation(  # type: ignore[override]
        self,
        expand_size: int = 1,
        is_encoder_decoder: bool = False,
        input_ids: Tensor | None = None,
        **model_kwargs: Any,
    ) -> tuple[Tensor | None, dict[str, Any]]:
        """Each beam has a row of what the decoder writes; the encoder's side has one a sentence."""
        if expand_size > 1:
            for name, value in model_kwargs.items():
                if name.startswith("decoder_") and isinstance(value, Tensor):
                    model_kwargs[name] = value.repeat_interleave(expand_size, dim=0)
            if input_ids is not None:
                input_ids = input_ids.repeat_interleave(expand_size, dim=0)
        return input_ids, model_kwargs
