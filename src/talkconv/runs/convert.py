"""`talkconv convert`: a fairseq checkpoint and its dictionaries to a model folder."""

from pathlib import Path

from rich.console import Console

from talkconv.files import check_new, new_folder
from talkconv.messages import one_message
from talkconv.models.dictionary import SPECIALS, read_dictionary, tokenizer_of
from talkconv.models.fairseq import read_checkpoint
from talkconv.models.generative import TaLKConvGenerativeModel
from talkconv.models.weights import network_of
from talkconv.runs.generation_config import follow
from talkconv.runs.generation_settings import GenerationSettings

# where the tokenizer of the target side stands when it is another than the source's
TARGET_TOKENIZER = "target_tokenizer"


def convert_command(checkpoint: Path, dictionaries: list[Path], out: Path) -> None:
    """Run convert() for the command line and say what was converted."""
    with one_message("not converted"):
        model = convert(checkpoint, dictionaries, out)
    config = model.config
    stacks = [config.encoder_l_max, config.decoder_l_max]
    layers = " + ".join(str(len(stack)) for stack in stacks if stack)
    Console().print(
        f"{out}: {type(model).__name__}, {model.num_parameters() / 1e6:.1f}M parameters, "
        f"{layers} layers, {config.vocab_size} words"
    )


def convert(checkpoint: Path, dictionaries: list[Path], out: Path) -> TaLKConvGenerativeModel:
    """Write the folder `out`, which a failure leaves absent, and return the network.

    It holds config.json, model.safetensors, the tokenizer of the source, and in the folder
    `target_tokenizer` that of the target if it differs.

    `dictionaries` are the source's and the target's, or one for both or for a language model.
    """
    check_new(out)
    model = network_of(read_checkpoint(checkpoint))
    follow(model, GenerationSettings())
    vocabularies = _vocabularies(model, dictionaries)
    with new_folder(out) as unfinished:
        model.save_pretrained(unfinished)
        tokenizer_of(vocabularies[0]).save_pretrained(unfinished)
        if vocabularies[-1] != vocabularies[0]:
            tokenizer_of(vocabularies[-1]).save_pretrained(unfinished / TARGET_TOKENIZER)
    return model


def _vocabularies(model: TaLKConvGenerativeModel, dictionaries: list[Path]) -> list[list[str]]:
    """The words of each side, source first, checked against the network's tables."""
    config = model.config
    sizes = {"target": config.vocab_size}
    if config.is_encoder_decoder:
        sizes = {"source": config.source_vocab_size, **sizes}
    if len(dictionaries) == 1:
        dictionaries = dictionaries * len(sizes)
    if len(dictionaries) != len(sizes):
        raise ValueError(
            f"this network takes {' or '.join(str(n) for n in range(1, len(sizes) + 1))} "
            f"dictionaries, got {len(dictionaries)}"
        )
    words = [read_dictionary(path) for path in dictionaries]
    for (side, size), path, found in zip(sizes.items(), dictionaries, words, strict=True):
        if len(found) != size:
            raise ValueError(
                f"the {side} side of this network has {size} words, {path} has {len(found)} with "
                f"the {len(SPECIALS)} special ones: give its own dictionaries, the source's first"
            )
    if config.share_embeddings and words[0] != words[1]:
        raise ValueError(
            "source and target share their embeddings in this network, but "
            f"{dictionaries[0]} and {dictionaries[1]} differ"
        )
    return words
