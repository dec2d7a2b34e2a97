"""`talkconv evaluate`: the scores of a run, or of outputs in files."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from talkconv.conventions import LANGUAGE_MODELLING, SUMMARIZATION
from talkconv.data.prepared import Prepared, open_prepared
from talkconv.evaluation.bleu import BLEU_PROTOCOLS, TOKENIZED_PROTOCOLS, bleu_metric
from talkconv.evaluation.metric import Metric, Score, score
from talkconv.evaluation.perplexity import perplexity, streamed_perplexity, words_of_lines
from talkconv.evaluation.report import Report, paper_scores
from talkconv.evaluation.rouge import IMPLEMENTATIONS, KINDS, RougeMetric
from talkconv.evaluation.significance import paired_bootstrap
from talkconv.files import write_text
from talkconv.generation.text_generator import Output, TextGenerator
from talkconv.messages import one_message
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.runs.open_run import Run, open_run

# whose outputs and references are raw text
RAW_PROTOCOLS = ("sacrebleu", "detok", "chrf")
ROUGE_PROTOCOLS = {"rouge": IMPLEMENTATIONS[0], "rouge-score": IMPLEMENTATIONS[1]}
PROTOCOLS = (*BLEU_PROTOCOLS, *ROUGE_PROTOCOLS)


def evaluate_files(
    hypotheses: Path,
    references: Path,
    protocols: Sequence[str] = RAW_PROTOCOLS,
    baseline: Path | None = None,
) -> Report:
    """Score lines of a file against those of another; files are taken as they are."""
    files = [hypotheses, references] + ([] if baseline is None else [baseline])
    lines = {file: read_lines(file) for file in files}
    for file in files:
        if len(lines[file]) != len(lines[references]):
            raise ValueError(
                f"{file} has {len(lines[file])} lines and {references} has "
                f"{len(lines[references])}: line by line they must belong together. Were empty "
                "lines dropped? talkconv generate keeps them"
            )
    metrics = metrics_of(protocols)
    found = lines[hypotheses], lines[references]
    return Report(
        str(hypotheses),
        [score(metric, *found, interval=True) for metric in metrics],
        comparisons=[
            paired_bootstrap(metric, lines[hypotheses], lines[other], lines[references])
            for other in files[2:]
            for metric in metrics
        ],
        about={"files": [str(file) for file in files], "lines": len(lines[references])},
    )


def metrics_of(protocols: Sequence[str]) -> list[Metric]:
    metrics: list[Metric] = []
    for protocol in protocols:
        if protocol in ROUGE_PROTOCOLS:
            metrics += [RougeMetric(kind, ROUGE_PROTOCOLS[protocol]) for kind in KINDS]
        elif protocol in BLEU_PROTOCOLS:
            metrics.append(bleu_metric(protocol))
        else:
            raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}; got {protocol!r}")
    return metrics


def evaluate_run(
    folder: Path,
    split: str = "test",
    *,
    model: str | None = None,
    data: Path | None = None,
    baseline: Path | None = None,
    changes: Mapping[str, Any] | None = None,
    streaming: bool = False,
) -> Report:
    """Score a run's model on a split of its data, and write the report into the run's folder."""
    run = open_run(folder, model)
    prepared = data_of(run, data)
    started = time.perf_counter()
    about: dict[str, Any] = dict(
        run=str(folder), model=run.weights.name, split=split, data=str(prepared.folder)
    )
    if run.card.task == LANGUAGE_MODELLING:
        if baseline is not None:
            raise ValueError("a language model writes no lines to compare: leave --baseline away")
        scores, comparisons = _perplexities(run, prepared, split, streaming), []
    else:
        settings = generation_settings(run, prepared).changed(changes or {})
        sources, references = prepared.texts(split)
        generator = TextGenerator(run.model, run.tokenizer, settings, run.target_tokenizer)
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(f"{split}, beam {settings.num_beams}", total=len(sources))
            written = generator.outputs(sources, on_done=partial(progress.advance, task))
            outputs = [output for (output,) in written]
        lines = _Lines(run, outputs, references, baseline)
        scores, comparisons = lines.scores(), lines.comparisons()
        about |= {"generation": asdict(settings), "lines": len(references)}
        _write_lines(folder / "evaluation" / f"{split}.hypotheses", outputs)
    about["seconds"] = round(time.perf_counter() - started, 1)
    title = f"{run.card.recipe}, {run.weights.name}, {split}"
    report = Report(title, scores, paper_scores(run.card.paper), comparisons, about)
    report.write(folder / "evaluation" / f"{split}.json")
    return report


class _Lines:
    """Outputs and references of a run, raw or tokenized as a metric wants them."""

    def __init__(
        self, run: Run, outputs: Sequence[Output], references: Sequence[str], baseline: Path | None
    ) -> None:
        tokenizer: Any = run.target_tokenizer
        self.metrics = run_metrics(run)
        raw = [output.text for output in outputs]
        other = None if baseline is None else read_lines(baseline)
        if other is not None and len(other) != len(references):
            raise ValueError(
                f"{baseline} has {len(other)} lines and the split has {len(references)}: "
                "it must hold an output for each source of the split"
            )
        self.raw = raw, list(references), other
        self.tokenized = (
            [tokenizer.decode_tokenized(output.tokens) for output in outputs],
            [tokenizer.tokenized_text(line) for line in references],
            None if other is None else [tokenizer.tokenized_text(line) for line in other],
        )

    def _of(self, metric: Metric) -> tuple[list[str], list[str], list[str] | None]:
        tokenized = metric in [bleu_metric(name) for name in TOKENIZED_PROTOCOLS]
        return self.tokenized if tokenized else self.raw

    def scores(self) -> list[Score]:
        return [score(metric, *self._of(metric)[:2], interval=True) for metric in self.metrics]

    def comparisons(self) -> list[Any]:
        found = []
        for metric in self.metrics:
            hypotheses, references, other = self._of(metric)
            if other is not None:
                found.append(paired_bootstrap(metric, hypotheses, other, references))
        return found


def run_metrics(run: Run) -> list[Metric]:
    """What is reported of a run: all protocols in use for its task and languages."""
    if run.card.task == SUMMARIZATION:
        return metrics_of(["rouge"])
    lowercase = bool(run.target_tokenizer.init_kwargs.get("lowercase"))
    protocols = ["tokenized"]
    if (run.card.source_lang, run.card.target_lang) == ("en", "de"):
        protocols.append("compound")
    return metrics_of(
        [*protocols, *(["sacrebleu-lc", "chrf-lc"] if lowercase else ["sacrebleu", "chrf"])]
    )


def data_of(run: Run, data: Path | None) -> Prepared:
    """The prepared folder that a run was trained on, or another with the same vocabulary."""
    where = data or run.card.data
    if where is None:
        raise ValueError(
            f"{run.folder} names no data: give --data DATA, or write outputs with talkconv "
            "generate and score them with talkconv evaluate --hypotheses F --references F"
        )
    prepared = open_prepared(where)
    if run.card.fingerprint is not None and prepared.fingerprint != run.card.fingerprint:
        raise ValueError(
            f"{where} has another vocabulary than {run.folder} was trained with: its ids mean "
            "other words. Give --data with the folder of the training"
        )
    return prepared


def generation_settings(run: Run, prepared: Prepared) -> GenerationSettings:
    """The run's, with sources cut where those of its training were."""
    return run.card.generation.reading_at_most(prepared.settings.max_source_tokens)


def _perplexities(run: Run, prepared: Prepared, split: str, streaming: bool) -> list[Score]:
    model: Any = run.model
    tokens = [token for row in prepared.split(split)["tokens"] for token in row]
    words = words_of_lines(prepared.lines(split))
    if streaming:
        found = streamed_perplexity(model, tokens, words=words)
    else:
        block = prepared.settings.block
        found = perplexity(model, tokens, block=block, context=block * 3 // 4, words=words)
    values = {"perplexity per token": found.per_token, "perplexity per word": found.per_word}
    return [
        Score(name, value, f"{name} = {value:.2f}", found.signature)
        for name, value in values.items()
        if value is not None
    ]


def read_lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8: {error}") from error
    lines = text.split("\n")
    # the last line ends as the others do, or does not
    return [line.removesuffix("\r") for line in (lines[:-1] if not lines[-1] else lines)]


def _write_lines(path: Path, outputs: Sequence[Output]) -> None:
    write_text(path, "".join(f"{output.text}\n" for output in outputs))


def evaluate_command(
    run: Path | None,
    *,
    hypotheses: Path | None,
    references: Path | None,
    protocols: Sequence[str] | None,
    split: str,
    **options: Any,
) -> None:
    """evaluate_run() or evaluate_files() for the command line."""
    with one_message("not evaluated"):
        if run is None and hypotheses is not None and references is not None:
            report = evaluate_files(
                hypotheses, references, protocols or RAW_PROTOCOLS, options["baseline"]
            )
        elif run is not None and hypotheses is None and references is None:
            if protocols:
                raise ValueError(
                    "a run is scored by all protocols of its task: leave --protocol away"
                )
            report = evaluate_run(run, split, **options)
        else:
            raise ValueError(
                "give a run (talkconv evaluate RUN), or files (--hypotheses F --references F)"
            )
        console = Console()
        console.print(report.table())
        for each in report.scores:
            console.print(f"{each.signature}: {each.text}", highlight=False, soft_wrap=True)
        if report.comparisons:
            console.print(report.comparison_table())
        if run is not None:
            console.print(
                f"written: {run / 'evaluation' / split}.json", highlight=False, soft_wrap=True
            )
