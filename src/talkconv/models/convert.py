"""`talkconv convert`: a fairseq checkpoint and its dictionaries to a model folder."""

import shutil
import tempfile
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from talkconv.models.base import TaLKConvPreTrainedModel
from talkconv.models.dictionary import SPECIALS, read_dictionary, tokenizer_of
from talkconv.models.fairseq import read_checkpoint
from talkconv.models.weights import network_of

# where the tokenizer of the target side stands when it is another than the source's
TARGET_TOKENIZER = "target_tokenizer"


def convert_command(checkpoint: Path, dictionaries: list[Path], out: Path) -> None:
    """convert() for the command line: what went wrong is one message, without a traceback."""
    console = Console()
    try:
        model = convert(checkpoint, dictionaries, out)
    except (ValueError, OSError) as error:
        console.print(f"[bold red]not converted:[/] {escape(str(error))}", highlight=False)
        raise typer.Exit(1) from error
    config = model.config
    stacks = [config.encoder_l_max, config.decoder_l_max]
    layers = " + ".join(str(len(stack)) for stack in stacks if stack)
    console.print(
        f"{out}: {type(model).__name__}, {model.num_parameters() / 1e6:.1f}M parameters, "
        f"{layers} layers, {config.vocab_size} words"
    )


def convert(checkpoint: Path, dictionaries: list[Path], out: Path) -> TaLKConvPreTrainedModel:
    """Write `out`: config.json, model.safetensors, the source's tokenizer, and the target's in
    `target_tokenizer` if it is another. Nothing is left behind when anything fails.

    `dictionaries` are the source's and the target's, or one for both or for a language model.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} must not exist yet, or be an empty folder")
    model = network_of(read_checkpoint(checkpoint))
    vocabularies = _vocabularies(model, dictionaries)
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        model.save_pretrained(unfinished)
        tokenizer_of(vocabularies[0]).save_pretrained(unfinished)
        if vocabularies[-1] != vocabularies[0]:
            tokenizer_of(vocabularies[-1]).save_pretrained(unfinished / TARGET_TOKENIZER)
        # mkdtemp makes folders that their owner alone can read
        unfinished.chmod(0o755)
        unfinished.replace(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return model


def _vocabularies(model: TaLKConvPreTrainedModel, dictionaries: list[Path]) -> list[list[str]]:
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
