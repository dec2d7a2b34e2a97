"""The Transformer that translations are measured against: MarianMT, also in CTranslate2.

Its weights are random, and its sizes are those of the network that it is compared with.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from talkconv.generation.text_generator import padded

# translates sentences with so many beams into so many words each, all of them ids
Translate = Callable[[list[list[int]], int, int], list[list[int]]]


def make_marian(sizes: Any) -> Any:
    """Return a network of the sizes of a TaLKConvConfig."""
    # transformers takes seconds to import, which other commands need not wait for.
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=sizes.vocab_size,
        d_model=sizes.dim,
        encoder_ffn_dim=sizes.ff_dim,
        decoder_ffn_dim=sizes.ff_dim,
        encoder_layers=len(sizes.encoder_l_max),
        decoder_layers=len(sizes.decoder_l_max),
        encoder_attention_heads=sizes.attention_heads,
        decoder_attention_heads=sizes.attention_heads,
        activation_function="swish",
        pad_token_id=sizes.vocab_size - 1,
        decoder_start_token_id=sizes.vocab_size - 1,
        eos_token_id=0,
        forced_eos_token_id=None,
    )
    model: Any = MarianMTModel(config)
    return model.eval()


def translate_with_marian(marian: Any) -> Translate:
    """Return a function that translates with the network in transformers."""

    def translate(sources: list[list[int]], beams: int, words: int) -> list[list[int]]:
        tokens, mask = padded(sources, marian.config.pad_token_id, left=False)
        # Without an end token, every translation has the full length.
        settings: dict[str, Any] = dict(
            num_beams=beams, max_new_tokens=words, eos_token_id=None, do_sample=False
        )
        out: Tensor = marian.generate(
            torch.from_numpy(tokens), attention_mask=torch.from_numpy(mask), **settings
        )
        ids: list[list[int]] = out[:, 1:].tolist()
        return ids

    return translate


def translate_with_ctranslate2(marian: Any, folder: Path, precision: str) -> Translate:
    """Return a function that translates with the weights of the network in CTranslate2."""
    import ctranslate2
    from ctranslate2.converters import TransformersConverter
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    # CTranslate2 needs a vocabulary, even for random weights.
    numbers = range(2, marian.config.vocab_size - 1)
    words = ["</s>", "<unk>", *(f"w{id}" for id in numbers), "<pad>"]
    ids = {word: id for id, word in enumerate(words)}
    make_tokenizer: Any = PreTrainedTokenizerFast

    class Converter(TransformersConverter):  # type: ignore[misc]
        def load_tokenizer(self, *args: Any, **kwargs: Any) -> Any:
            vocabulary = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
            special = dict(eos_token="</s>", unk_token="<unk>", pad_token="<pad>")
            return make_tokenizer(tokenizer_object=vocabulary, **special)

    saved, converted = folder / "marian", folder / f"marian-{precision}"
    if not saved.exists():
        marian.save_pretrained(saved)
    if not converted.exists():
        Converter(str(saved)).convert(str(converted), quantization=precision)
    translator = ctranslate2.Translator(
        str(converted),
        compute_type=precision,
        inter_threads=1,
        intra_threads=torch.get_num_threads(),
    )

    def translate(sources: list[list[int]], beams: int, length: int) -> list[list[int]]:
        sentences = [[words[id] for id in row] for row in sources]
        limits = dict(max_decoding_length=length, min_decoding_length=length)
        found = translator.translate_batch(sentences, beam_size=beams, **limits)
        return [[ids[word] for word in each.hypotheses[0]] for each in found]

    return translate
