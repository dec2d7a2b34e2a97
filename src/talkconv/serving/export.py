"""`talkconv export` writes a trained network as ONNX files, and checks them before it publishes."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

import talkconv
from talkconv.files import check_new, new_folder, write_text
from talkconv.generation.text_generator import Output
from talkconv.generation.text_model import TextModel
from talkconv.messages import one_message
from talkconv.runs.convert import TARGET_TOKENIZER as CONVERTED_TARGET
from talkconv.runs.open_run import Run, open_run
from talkconv.serving.check_export import INPUTS, LIMIT, largest_difference, shape_of
from talkconv.serving.export_card import (
    FLOAT32,
    INT8,
    TARGET_TOKENIZER,
    TOKENIZER,
    ExportCard,
)
from talkconv.serving.loading import load_export
from talkconv.serving.model_card import model_card
from talkconv.serving.quantize import megabytes, write_int8
from talkconv.serving.trace import write_graphs
from talkconv.serving.validation_lines import (
    CONTINUATION,
    ValidationLines,
    ValidationScore,
    loss_of,
    score_of_outputs,
    validation_lines,
)

# a network that loses more than this to float32 is published with a warning
LOUD = {"BLEU": 0.3, "ROUGE": 0.3, "loss": 0.03}
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True)
class ExportRequest:
    """A request to export a network: the network, the new folder, and the text for the check."""

    run: Path
    folder: Path
    # best, last or averaged; None: the network that the run's card names
    model: str | None = None
    int8: bool = False
    # the prepared data of the run, if it moved; or any file of lines, if there is none
    data: Path | None = None
    lines: Path | None = None
    # how many lines of the validation set are compared; None: all
    limit: int | None = None


def export_command(request: ExportRequest) -> None:
    """Run export() for the command line."""
    with one_message("not exported", interrupted="nothing was written"):
        export(request, Console())


def export(request: ExportRequest, console: Console) -> ExportCard:
    """Write a run's network to a new folder, which is complete or absent.

    Nothing is published unless the export gives the logits and the outputs of the network.
    """
    check_new(request.folder)
    run = open_run(request.run, request.model, "cpu")
    lines = validation_lines(run, request.data, request.lines, request.limit)
    card = ExportCard(
        # an export is made to be shared, and a path of this machine says nothing elsewhere
        run=replace(run.card, generation=lines.settings, model=FLOAT32, data=None),
        network=shape_of(run.model),
        version=talkconv.__version__,
    )
    with new_folder(request.folder) as folder:
        _copy_tokenizers(run, folder)
        card.write(folder)
        with console.status("writing the graphs"):
            write_graphs(run.model, folder / FLOAT32)
        checks = _check(run, folder, lines, console)
        if request.int8:
            checks |= _check_int8(run, folder, lines, console)
        card = replace(card, checks=checks)
        card.write(folder)
        write_text(folder / "README.md", model_card(run, card))
    console.print(
        f"{escape(str(request.folder))} is ready. Next: talkconv serve "
        f"{escape(str(request.folder))}",
        highlight=False,
        soft_wrap=True,
    )
    return card


def _copy_tokenizers(run: Run, folder: Path) -> None:
    places = {TOKENIZER: run.weights, TARGET_TOKENIZER: run.weights / CONVERTED_TARGET}
    for name, source in places.items():
        if source.is_dir():
            (folder / name).mkdir()
            for file in TOKENIZER_FILES:
                shutil.copyfile(source / file, folder / name / file)


def _check(run: Run, folder: Path, lines: ValidationLines, console: Console) -> dict[str, Any]:
    """Compare logits and outputs with those of the network, and raise an error if they differ."""
    exported = load_export(folder, FLOAT32)
    network: Any = exported.network
    with console.status(f"comparing logits on {INPUTS} random inputs"):
        found = largest_difference(run.model, network, INPUTS)
    if not found <= LIMIT:
        raise ValueError(
            f"the logits of the export must be within {LIMIT:g} of the network's (of the largest "
            f"of them, in float32), got {found:.2g}: please report this as a bug"
        )
    original = TextModel(
        run.model, run.tokenizer, lines.settings, run.card.task, run.target_tokenizer
    )
    with console.status(f"comparing outputs for {len(lines.sources)} lines of {lines.name}"):
        ours, theirs = (_outputs(model, lines) for model in (exported, original))
    different = [row for row in range(len(ours)) if ours[row].tokens != theirs[row].tokens]
    if different:
        row = different[0]
        raise ValueError(
            f"the export must write what the network writes, but differs for {len(different)} of "
            f"{len(ours)} lines, first for {lines.sources[row]!r}: {ours[row].text!r} (score "
            f"{ours[row].score:.6f}) instead of {theirs[row].text!r} ({theirs[row].score:.6f})"
        )
    console.print(
        f"float32: logits differ by at most {found:.1g} of the largest on {INPUTS} random inputs; "
        f"the outputs for {len(ours)} lines are the same",
        highlight=False,
        soft_wrap=True,
    )
    return {"logits": found, "random inputs": INPUTS, "same outputs": len(ours)}


def _outputs(model: TextModel, lines: ValidationLines) -> list[Output]:
    changes = {} if model.network.config.is_encoder_decoder else {"max_length": CONTINUATION}
    found = model.outputs(lines.sources, on_cut=lambda line, tokens: None, **changes)
    return [output for (output,) in found]


def _check_int8(run: Run, folder: Path, lines: ValidationLines, console: Console) -> dict[str, Any]:
    """Write the int8 network beside the other one, and tell the scores and sizes of both."""
    with console.status("quantizing"):
        write_int8(folder / FLOAT32, folder / INT8)
    facts: dict[str, Any] = {}
    scores = {}
    for name in (FLOAT32, INT8):
        size = megabytes(folder / name)
        with console.status(f"scoring {name} on {lines.name}"):
            scores[name] = _score(load_export(folder, name), run.card.task, lines)
        told = "no references to score with" if scores[name] is None else str(scores[name])
        console.print(f"{name}: {told}, {size:.1f} MB", highlight=False, soft_wrap=True)
        facts[name] = {"score": told, "megabytes": round(size, 1)}
    exact, rounded = scores[FLOAT32], scores[INT8]
    if exact is not None and rounded is not None:
        lost = exact.loss_to(rounded)
        if lost > LOUD[exact.name]:
            console.print(
                f"[bold red]int8 is worse by {lost:.2f} {exact.name}[/] than float32 on "
                f"{escape(lines.name)}: use float32, or train the network longer",
                highlight=False,
                soft_wrap=True,
            )
    return facts


def _score(model: TextModel, task: str, lines: ValidationLines) -> ValidationScore | None:
    """Return the score of a network; None if the lines have no references."""
    network: Any = model.network
    codec: Any = model.target_tokenizer
    if not network.config.is_encoder_decoder:
        return loss_of(network, codec, lines.sources)
    if lines.targets is None:
        return None
    outputs = [output.text for output in _outputs(model, lines)]
    return score_of_outputs(task, outputs, lines.targets, codec)
