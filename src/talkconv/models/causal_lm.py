"""TaLKConvForCausalLM: a language model with adaptive or ordinary embeddings."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.utils.generic import can_return_tuple

from talkconv.layers.adaptive import AdaptiveSoftmax
from talkconv.models.base import batch_of, padding_of, refuse_attentions
from talkconv.models.cache import TaLKConvCache
from talkconv.models.configuration import TaLKConvConfig
from talkconv.models.generative import TaLKConvGenerativeModel
from talkconv.models.loss import smoothed_cross_entropy, without_padding
from talkconv.models.stack import Decoder


class TaLKConvForCausalLM(TaLKConvGenerativeModel):
    """A language model: a decoder alone, which predicts each token from those before.

    >>> config = TaLKConvConfig(vocab_size=20, dim=8, heads=2, ff_dim=16, encoder_l_max=[])
    >>> model = TaLKConvForCausalLM(config).eval()
    >>> model(torch.tensor([[5, 9, 7]])).logits.shape
    torch.Size([1, 3, 20])
    """

    def __init__(self, config: TaLKConvConfig) -> None:
        super().__init__(config)
        if config.has_encoder:
            raise ValueError(
                "a language model has no encoder: make encoder_l_max empty, "
                f"got {len(config.encoder_l_max)} layers. TaLKConvForConditionalGeneration has one"
            )
        self.decoder = Decoder(config)
        self.lm_head: nn.Linear | None = None
        self.adaptive_softmax: AdaptiveSoftmax | None = None
        if config.adaptive_cutoffs:
            self.adaptive_softmax = AdaptiveSoftmax(
                config.vocab_size,
                config.dim,
                config.adaptive_cutoffs,
                config.adaptive_factor,
                dropout=config.adaptive_dropout,
            )
            self._tied_weights_keys = _tied_bands(len(config.adaptive_cutoffs) + 1)
        else:
            self.lm_head = nn.Linear(config.dim, config.vocab_size, bias=False)
            self._tied_weights_keys = {"lm_head.weight": "decoder.embed_tokens.weight"}
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        past_key_values: TaLKConvCache | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        logits_to_keep: int = 0,
        num_items_in_batch: Tensor | int | None = None,
    ) -> CausalLMOutputWithPast:
        """Predict the next tokens: input_ids (B, T) -> logits (B, T, vocab_size).

        The logits of an adaptive softmax are log-probabilities. inputs_embeds (B, T, dim) may stand
        for input_ids. attention_mask is 0 at padding. Padding may stand on either side of a prompt
        that is read at once, but only on the left of one that goes on. labels (B, T) are the tokens
        themselves: each is predicted from those before. With labels, an adaptive softmax gives the
        loss alone, which needs the probabilities of few words.
        """
        refuse_attentions(self.wanted("output_attentions", output_attentions))
        rows, tokens = batch_of(input_ids, inputs_embeds)
        cache = self.decoder.ready_cache(past_key_values, use_cache, rows)
        hidden = self.decoder(
            input_ids,
            padding_mask=padding_of(attention_mask, tokens),
            cache=cache,
            inputs_embeds=inputs_embeds,
        )
        wanted = self.wanted("output_hidden_states", output_hidden_states)
        loss: Any = None
        logits: Any = None
        if labels is None or self.adaptive_softmax is None:
            logits = self._logits(hidden[-1][:, -logits_to_keep:])
        if labels is not None:
            loss = self._loss(hidden[-1], logits, labels, num_items_in_batch)
        return CausalLMOutputWithPast(
            loss=loss,
            logits=logits,
            past_key_values=cache,
            hidden_states=hidden if wanted else None,
        )

    def token_losses(
        self, input_ids: Tensor, targets: Tensor, past_key_values: TaLKConvCache | None = None
    ) -> Tensor:
        """Return -log P of each target: input_ids (B, T), targets (B, t) -> (B, t), t <= T.

        The targets follow the last t of the inputs; the inputs before are context.
        """
        hidden = self.decoder(input_ids, cache=past_key_values)[-1][:, -targets.shape[1] :]
        if self.adaptive_softmax is not None:
            return self.adaptive_softmax.loss(hidden, targets, reduction="none")
        return F.cross_entropy(
            self._logits(hidden).float().transpose(1, 2), targets, reduction="none"
        )

    def _logits(self, hidden: Tensor) -> Tensor:
        if self.adaptive_softmax is not None:
            return self.adaptive_softmax.log_prob(hidden)
        assert self.lm_head is not None
        logits: Tensor = self.lm_head(hidden)
        return logits

    def _loss(
        self, hidden: Tensor, logits: Tensor | None, labels: Tensor, num_items: Tensor | int | None
    ) -> Tensor:
        pad, targets = self.config.pad_token_id, labels[:, 1:]
        if self.adaptive_softmax is not None:
            reduction = "mean" if num_items is None else "sum"
            loss = self.adaptive_softmax.loss(
                hidden[:, :-1], without_padding(targets, pad), reduction=reduction
            )
            return loss if num_items is None else loss / num_items
        assert logits is not None
        return smoothed_cross_entropy(
            logits[:, :-1],
            targets,
            label_smoothing=self.config.label_smoothing,
            pad_token_id=pad,
            num_items=num_items,
        )


def _tied_bands(bands: int) -> dict[str, str]:
    """Return the weights that an adaptive softmax shares with the adaptive input.

    They are all words, and all projections but the first band's, which the softmax does not have.
    """
    source = "decoder.embed_tokens"
    words = {
        f"adaptive_softmax.words.{band}": f"{source}.embeddings.{band}.weight"
        for band in range(bands)
    }
    projections = {
        f"adaptive_softmax.projections.{band - 1}": f"{source}.projections.{band}.weight"
        for band in range(1, bands)
    }
    return {**words, **projections}
