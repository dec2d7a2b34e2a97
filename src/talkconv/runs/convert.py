"""`talkconv convert` makes a model folder of a fairseq checkpoint and its dictionaries."""

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

# the folder of the target's tokenizer, if it differs from the source's
TARGET_TOKENIZER = "target_tokenizer"


def convert_command(checkpoint: Path, dictionaries: list[Path], out: Path) -> None:
    """Run convert() for the command line and print what was converted."""
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
    """Write the network to the folder `out`, and return it. If this fails, nothing is written.

    The folder has config.json, model.safetensors and the tokenizer of the source. If the tokenizer
    of the target differs, it is in the folder `target_tokenizer`.

    `dictionaries` are those of source and target. One is enough for a language model, or if source
    and target share it.
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
    """Return the words of source and target, after a check against the sizes of the network."""
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
                f"the {side} side of this network has {size} words, but {path} has {len(found)}, "
                f"{len(SPECIALS)} special ones included: give the dictionaries of this network, "
                "the source's first"
            )
    if config.share_embeddings and words[0] != words[1]:
        raise ValueError(
            f"{dictionaries[0]} and {dictionaries[1]} must be equal, because source and target "
            "share their embeddings in this network"
        )
    return words
