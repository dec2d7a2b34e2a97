"""The Transformer that translations are measured against: MarianMT, also in CTranslate2.

Its sizes are those of the paper's comparison on IWSLT, and its weights are random.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

VOCABULARY = 10_000
# ids from the first of these to before the last are words; the others are special tokens
WORDS = (4, VOCABULARY - 1)

# translates sentences (B, S) with so many beams into so many tokens each, and returns their ids
Translate = Callable[[Tensor, int, int], list[list[int]]]


def make_marian() -> Any:
    """Return the network: d 512, ff 1024, 6 + 6 layers, 4 heads."""
    # transformers takes seconds to import, which other commands need not wait for.
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=512,
        encoder_ffn_dim=1024,
        decoder_ffn_dim=1024,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        activation_function="swish",
        pad_token_id=VOCABULARY - 1,
        decoder_start_token_id=VOCABULARY - 1,
        eos_token_id=0,
        forced_eos_token_id=None,
    )
    model: Any = MarianMTModel(config)
    return model.eval()


def translate_with(model: Any) -> Translate:
    """Return a function that translates with a transformers model."""

    def translate(source: Tensor, beams: int, tokens: int) -> list[list[int]]:
        # Without an end token, every translation has all its tokens.
        settings: dict[str, Any] = dict(
            num_beams=beams, max_new_tokens=tokens, eos_token_id=None, do_sample=False
        )
        out: Tensor = model.generate(source, attention_mask=torch.ones_like(source), **settings)
        ids: list[list[int]] = out[:, 1:].tolist()
        return ids

    return translate


def translate_with_ctranslate2(marian: Any, folder: Path, precision: str) -> Translate:
    """Return a function that translates with the weights of a Marian network in CTranslate2."""
    import ctranslate2
    from ctranslate2.converters import TransformersConverter
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    # Random weights need a vocabulary all the same.
    words = ["</s>", "<unk>", *(f"w{id}" for id in range(2, VOCABULARY - 1)), "<pad>"]
    ids = {word: id for id, word in enumerate(words)}
    make_tokenizer: Any = PreTrainedTokenizerFast

    class Converter(TransformersConverter):  # type: ignore[misc]
        def load_tokenizer(self, *args: Any, **kwargs: Any) -> Any:
            vocabulary = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
            special = dict(eos_token="</s>", unk_token="<unk>", pad_token="<pad>")
            return make_tokenizer(tokenizer_object=vocabulary, **special)

    saved, converted = folder / "marian", folder / precision
    if not saved.exists():
        marian.save_pretrained(saved)
    Converter(str(saved)).convert(str(converted), quantization=precision)
    translator = ctranslate2.Translator(
        str(converted),
        compute_type=precision,
        inter_threads=1,
        intra_threads=torch.get_num_threads(),
    )

    def translate(source: Tensor, beams: int, tokens: int) -> list[list[int]]:
        sentences = [[words[id] for id in row] for row in source.tolist()]
        length = dict(max_decoding_length=tokens, min_decoding_length=tokens)
        found = translator.translate_batch(sentences, beam_size=beams, **length)
        return [[ids[word] for word in each.hypotheses[0]] for each in found]

    return translate


def random_sentences(batch: int, tokens: int) -> Tensor:
    """Return sentences of random words, (B, S)."""
    return torch.randint(*WORDS, (batch, tokens))
