"""`talkconv bench generate`: translation by each engine, one text at a time and in batches.

With a trained run the texts are its test set, and BLEU stands beside the speed. Without one, a
network of the IWSLT size with random weights translates random words.
"""

import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from talkconv.bench.engines import (
    CTRANSLATE2,
    OURS,
    Engine,
    engine_of,
    exported_engines,
    random_model,
    random_texts,
    transformer_engines,
)
from talkconv.bench.generation_part import SOURCE, TARGET, VOCABULARY, make_ours
from talkconv.bench.measure import milliseconds
from talkconv.conventions import TRANSLATION
from talkconv.generation.text_model import TextModel
from talkconv.machine import headline, write_results
from talkconv.messages import one_message

BEAMS = (1, 5)
BATCH = 32
RANDOM_TEXTS = 64


@dataclass(frozen=True)
class Task:
    """A model, the texts that it translates, and the translations that they should have."""

    model: TextModel
    texts: Sequence[str]
    # None if the weights are random
    references: Sequence[str] | None
    # how the translations are scored
    protocol: str = "sacrebleu"


@dataclass(frozen=True)
class Speed:
    """The speed of one engine, and how well it translates."""

    # milliseconds for one text: the median, and the 95th percentile
    latency: float
    latency_95: float
    # sentences a second in batches
    rate: float
    bleu: float | None


def bench_generate(
    run: Annotated[Path | None, typer.Argument(help="A trained run; default: random.")] = None,
    data: Annotated[Path | None, typer.Option(help="The run's data, if it moved.")] = None,
    split: Annotated[str, typer.Option(help="The split to translate.")] = "test",
    alone: Annotated[int, typer.Option(help="Texts that are translated one at a time.")] = 100,
    beams: Annotated[
        list[int] | None, typer.Option(help="Beams, repeatable.", show_default="1 and 5")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A JSON file to write; without it nothing is written.")
    ] = None,
) -> None:
    """Time translation in PyTorch, ONNX Runtime, CTranslate2 and MarianMT."""
    console = Console()
    results: dict[str, Any] = {}
    with one_message("not measured"), tempfile.TemporaryDirectory() as folder:
        task = random_task() if run is None else task_of(run, data, split)
        console.print(headline(f"{len(task.texts)} texts, batches of {BATCH}"), highlight=False)
        for count in beams or BEAMS:
            speeds = speeds_of(task, count, alone, Path(folder), console)
            results[f"beams {count}"] = {name: asdict(speed) for name, speed in speeds.items()}
            console.print(table_of(count, speeds))
    if not any(name in results[key] for key in results for name in CTRANSLATE2):
        console.print("without CTranslate2: pip install 'talkconv\\[bench]'", highlight=False)
    if out is not None:
        write_results(out, results)
        console.print(f"written to {out}")


def random_task() -> Task:
    """Return random words for a network of the IWSLT size with random weights."""
    model = random_model(make_ours("talk"), TARGET)
    return Task(model, random_texts(RANDOM_TEXTS, SOURCE, VOCABULARY), None)


def task_of(folder: Path, data: Path | None, split: str) -> Task:
    """Return a split of a run's data, with the run's settings of generation."""
    # Importing torch and transformers takes seconds. Wrong arguments raise an error before that.
    from talkconv.evaluation.evaluate_run import data_of, generation_settings, writes_lowercase
    from talkconv.runs.open_run import open_run

    run = open_run(folder, None, "cpu")
    if run.card.task != TRANSLATION:
        raise ValueError(f"the task of {folder} must be {TRANSLATION}, got {run.card.task}")
    prepared = data_of(run, data)
    settings = generation_settings(run, prepared)
    model = TextModel(run.model, run.tokenizer, settings, TRANSLATION, run.target_tokenizer)
    protocol = "sacrebleu-lc" if writes_lowercase(run) else "sacrebleu"
    return Task(model, *prepared.texts(split), protocol)


def speeds_of(
    task: Task, beams: int, alone: int, folder: Path, console: Console
) -> dict[str, Speed]:
    """Let all engines translate, taking turns, first one text at a time and then in batches."""
    ours = engine_of(task.model)
    with console.status("exporting the network"):
        exported = exported_engines(task.model, folder)
        written = _words_of(ours(task.texts[:BATCH], beams), task)
        # A Transformer with random weights has no end, so it writes as many words as ours.
        others, _ = transformer_engines(task.model, lambda texts: written, folder)
    engines = {OURS: ours, **exported, **others}
    ones = [[text] for text in task.texts[:alone]]
    together = batches_by_length(task.texts)
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task(f"beams {beams}", total=len(ones) + len(together))
        _, single = take_turns(engines, ones, beams, lambda: progress.advance(bar))
        outputs, batched = take_turns(engines, together, beams, lambda: progress.advance(bar))
    order = [text for batch in together for text in batch]
    return {
        name: Speed(
            latency=statistics.median(single[name]) * 1e3,
            latency_95=statistics.quantiles(single[name], n=20, method="inclusive")[-1] * 1e3,
            rate=len(task.texts) / sum(batched[name]),
            bleu=None if name in others else bleu_of(task, order, outputs[name]),
        )
        for name in engines
    }


def take_turns(
    engines: Mapping[str, Engine],
    batches: Sequence[Sequence[str]],
    beams: int,
    advance: Any = lambda: None,
) -> tuple[dict[str, list[str]], dict[str, list[float]]]:
    """Let each engine translate each batch; return all outputs, and the seconds of each batch."""
    outputs: dict[str, list[str]] = {name: [] for name in engines}
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for translate in engines.values():
        translate(batches[0], beams)  # warms up
    for batch in batches:
        for name, translate in engines.items():
            begin = time.perf_counter()
            found = translate(batch, beams)
            seconds[name].append(time.perf_counter() - begin)
            outputs[name] += found
        advance()
    return outputs, seconds


def batches_by_length(texts: Sequence[str]) -> list[list[str]]:
    """Return the texts in batches of similar length, the longest first."""
    ordered = sorted(texts, key=lambda text: -len(text.split()))
    return [ordered[i : i + BATCH] for i in range(0, len(ordered), BATCH)]


def bleu_of(task: Task, texts: Sequence[str], outputs: Sequence[str]) -> float | None:
    """Return BLEU of outputs for the texts of a task, in the order of `texts`."""
    if task.references is None:
        return None
    from talkconv.evaluation.bleu import corpus_bleu

    # A text that comes twice has an equal output twice.
    found = dict(zip(texts, outputs, strict=True))
    ordered = [found[text] for text in task.texts]
    return corpus_bleu(ordered, task.references, task.protocol).value


def _words_of(outputs: Sequence[str], task: Task) -> int:
    """Return how many tokens the longest of some outputs has, its end included."""
    tokenizer = task.model.target_tokenizer or task.model.tokenizer
    return max(len(tokenizer(output)["input_ids"]) for output in outputs)


def table_of(beams: int, speeds: Mapping[str, Speed]) -> Table:
    """Return the speeds of all engines as a table for the terminal."""
    table = Table(title=f"Translation, beams {beams}", title_justify="left")
    table.add_column("")
    for heading in ("alone, ms", "95 %, ms", f"batch {BATCH}, sentences/s", "BLEU"):
        table.add_column(heading, justify="right")
    for name, speed in sorted(speeds.items(), key=lambda item: -item[1].rate):
        times = (milliseconds(value / 1e3) for value in (speed.latency, speed.latency_95))
        bleu = "–" if speed.bleu is None else f"{speed.bleu:.2f}"
        style = "bold" if name == OURS else ""
        table.add_row(name, *times, f"{speed.rate:.1f}", bleu, style=style)
    return table
