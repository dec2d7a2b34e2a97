"""TaLKConvPreTrainedModel: what all our networks have in common as models of transformers."""

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init

from talkconv.layers.adaptive import AdaptiveSoftmax
from talkconv.layers.light_conv import LightConv
from talkconv.layers.mixer import first_gain
from talkconv.models.configuration import TaLKConvConfig
from talkconv.models.stack import Stack


class TaLKConvPreTrainedModel(PreTrainedModel):
    """The common base of our networks: saving, loading, first weights, and embeddings."""

    config: TaLKConvConfig
    config_class = TaLKConvConfig
    supports_gradient_checkpointing = True
    # transformers then divides the loss by the labels of all accumulated batches
    accepts_loss_kwargs = True
    _no_split_modules = ["EncoderBlock", "DecoderBlock"]  # noqa: RUF012

    def _init_weights(self, module: nn.Module) -> None:
        """Draw first weights as the authors do: Xavier-uniform, embeddings of variance 1 / dim."""
        if isinstance(module, nn.Linear):
            init.xavier_uniform_(module.weight, gain=first_gain(module))
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
        """Return the module that embeds input_ids."""
        return self._input_stack().embed_tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        self._input_stack().embed_tokens = value

    def _input_stack(self) -> Stack:
        stack = self.get_submodule("encoder" if self.config.has_encoder else "decoder")
        assert isinstance(stack, Stack)
        return stack

    def wanted(self, name: str, value: bool | None) -> bool:
        """Return whether an output is wanted: as the call says, or else as the config says."""
        return bool(getattr(self.config, name, False)) if value is None else value

    def resize_token_embeddings(
        self,
        new_num_tokens: int | None = None,
        pad_to_multiple_of: int | None = None,
        mean_resizing: bool = True,
    ) -> nn.Embedding:
        """Change the vocabulary's size, if there is one vocabulary of ordinary embeddings."""
        two = self.config.is_encoder_decoder and not self.config.share_embeddings
        if two or self.config.adaptive_cutoffs:
            kind = "two vocabularies" if two else "adaptive embeddings"
            raise NotImplementedError(
                f"a network of {kind} cannot be resized: make a new one with the new sizes in the "
                "config (vocab_size, encoder_vocab_size, adaptive_cutoffs)"
            )
        self.config.encoder_vocab_size = None
        embedding: nn.Embedding = super().resize_token_embeddings(
            new_num_tokens, pad_to_multiple_of, mean_resizing
        )
        return embedding


def padding_of(attention_mask: Tensor | None, tokens: int) -> Tensor | None:
    """Return a mask (B, T) that is True at padding, made of the last `tokens` columns."""
    return None if attention_mask is None else attention_mask[:, -tokens:] == 0


def refuse_attentions(wanted: bool) -> None:
    """Raise a ValueError if a network without attention weights is asked for them."""
    if wanted:
        raise ValueError(
            "output_attentions=True gives the attention of a decoder over its encoder, and this "
            "network has no such attention. layer.offsets(x) gives the windows of a TaLKConv layer"
        )


def batch_of(input_ids: Tensor | None, inputs_embeds: Tensor | None) -> tuple[int, int]:
    """Return rows and tokens of a batch that is given as ids or as embeddings."""
    given = input_ids if inputs_embeds is None else inputs_embeds
    if given is None:
        raise ValueError("give input_ids or inputs_embeds")
    return given.shape[0], given.shape[1]
