"""Classifiers of whole texts and of single tokens: an encoder alone and a linear layer."""

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import (
    BaseModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils.generic import can_return_tuple

from talkconv.layers.dropout import Dropout
from talkconv.models.base import TaLKConvPreTrainedModel, refuse_attentions
from talkconv.models.configuration import TaLKConvConfig
from talkconv.models.encoder_decoder import encode
from talkconv.models.stack import Encoder


class TaLKConvClassifier(TaLKConvPreTrainedModel):
    """The common base of both classifiers.

    It takes the encoder of any network: from_pretrained() of a translation's folder keeps the
    encoder, leaves the decoder out, and starts with a new head.
    """

    # transformers must not divide the loss of a classifier by a number of tokens
    accepts_loss_kwargs = False

    def __init__(self, config: TaLKConvConfig) -> None:
        if not config.has_encoder:
            raise ValueError(
                "a classifier needs encoder layers: encoder_l_max is empty, as in a language model"
            )
        super().__init__(config.encoder_alone())
        config = self.config
        rate = config.dropout if config.classifier_dropout is None else config.classifier_dropout
        self.encoder = Encoder(config)
        self.dropout = Dropout(rate)
        self.classifier = nn.Linear(config.dim, config.num_labels or 0)
        self.post_init()

    def encode(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None,
        inputs_embeds: Tensor | None,
        output_attentions: bool | None,
        output_hidden_states: bool | None,
    ) -> BaseModelOutput:
        """Return the states of all tokens (B, S, dim)."""
        refuse_attentions(self.wanted("output_attentions", output_attentions))
        wanted = self.wanted("output_hidden_states", output_hidden_states)
        return encode(self.encoder, input_ids, attention_mask, inputs_embeds, wanted)


class TaLKConvForSequenceClassification(TaLKConvClassifier):
    """Classifies whole texts: the pooled states of an encoder go through one linear layer.

    >>> config = TaLKConvConfig(vocab_size=20, dim=8, heads=2, ff_dim=16, num_labels=3)
    >>> model = TaLKConvForSequenceClassification(config).eval()
    >>> model(torch.tensor([[5, 9, 2]])).logits.shape
    torch.Size([1, 3])
    """

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> SequenceClassifierOutput:
        """Classify input_ids (B, S) -> logits (B, num_labels).

        attention_mask is 0 at padding; without it padding is where the pad token is. labels are
        (B,) classes, (B, num_labels) zeros and ones, or numbers: config.problem_type says which.
        """
        encoded = self.encode(
            input_ids, attention_mask, inputs_embeds, output_attentions, output_hidden_states
        )
        states = encoded.last_hidden_state
        assert states is not None
        padding_mask = self.encoder.padding_mask(input_ids, attention_mask)
        logits = self.classifier(self.dropout(pool(states, padding_mask, self.config.pooling)))
        loss = None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=encoded.hidden_states
        )


class TaLKConvForTokenClassification(TaLKConvClassifier):
    """Classifies each token: the states of an encoder go through one linear layer.

    >>> config = TaLKConvConfig(vocab_size=20, dim=8, heads=2, ff_dim=16, num_labels=3)
    >>> model = TaLKConvForTokenClassification(config).eval()
    >>> model(torch.tensor([[5, 9, 2, 7]])).logits.shape
    torch.Size([1, 4, 3])
    """

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> TokenClassifierOutput:
        """Classify each token of input_ids (B, S) -> logits (B, S, num_labels).

        attention_mask is 0 at padding; without it padding is where the pad token is. labels (B, S)
        are classes, and -100 where no loss is counted.
        """
        encoded = self.encode(
            input_ids, attention_mask, inputs_embeds, output_attentions, output_hidden_states
        )
        logits = self.classifier(self.dropout(encoded.last_hidden_state))
        loss = None
        if labels is not None:
            loss = self.loss_function(logits=logits, labels=labels, config=self.config)
        return TokenClassifierOutput(loss=loss, logits=logits, hidden_states=encoded.hidden_states)


def pool(states: Tensor, padding_mask: Tensor | None, pooling: str) -> Tensor:
    """Make one state of all tokens but padding: states (B, S, dim), mask (B, S) -> (B, dim).

    >>> states, mask = torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([[False, False, True]])
    >>> pool(states, mask, "mean"), pool(states, mask, "max")
    (tensor([[2.]]), tensor([[3.]]))
    """
    if padding_mask is None:
        padding_mask = torch.zeros(states.shape[:2], dtype=torch.bool, device=states.device)
    hidden = padding_mask[..., None]
    if pooling == "max":
        return states.masked_fill(hidden, torch.finfo(states.dtype).min).amax(dim=1)
    # a text of padding alone has a mean of 0
    tokens = (~hidden).sum(dim=1).clamp(min=1)
    return states.masked_fill(hidden, 0).sum(dim=1) / tokens
