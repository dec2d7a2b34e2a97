"""Scores a run or an export: by its outputs for a split of its data, or by its perplexity.

This file does not import torch. A run needs it, and imports it when its network is opened.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rich.console import Console
from rich.progress import Progress

from talkconv.conventions import LANGUAGE_MODELLING, SUMMARIZATION
from talkconv.data.prepared import Prepared, open_prepared
from talkconv.evaluation.bleu import TOKENIZED_PROTOCOLS, bleu_metric
from talkconv.evaluation.evaluate_files import lines_of
from talkconv.evaluation.metric import Metric, Score, score
from talkconv.evaluation.protocols import metrics_of
from talkconv.evaluation.rouge import BY_SENTENCES, RougeMetric, rouge_metrics
from talkconv.evaluation.score_report import (
    ScoreReport,
    outputs_path,
    paper_scores,
    report_path,
)
from talkconv.evaluation.significance import Comparison, paired_bootstrap
from talkconv.evaluation.stream_blocks import Perplexity, words_of_lines
from talkconv.files import write_text
from talkconv.generation.text_generator import Output, TextGenerator
from talkconv.machine import describe_machine
from talkconv.messages import can_redraw
from talkconv.runs.card import RunCard
from talkconv.runs.generation_settings import GenerationSettings


class EvaluatedRun(Protocol):
    """A network that can be scored, with its tokenizers and its card: a Run or an exported one."""

    @property
    def model(self) -> Any: ...
    @property
    def tokenizer(self) -> Any: ...
    @property
    def target_tokenizer(self) -> Any: ...
    @property
    def card(self) -> RunCard: ...
    @property
    def folder(self) -> Path: ...
    @property
    def weights(self) -> Path: ...


# computes the perplexity of a split, read in blocks or as one stream
PerplexityOf = Callable[[EvaluatedRun, Prepared, str, bool], Perplexity]


def evaluate_run(
    folder: Path,
    split: str = "test",
    *,
    model: str | None = None,
    data: Path | None = None,
    baseline: Path | None = None,
    changes: Mapping[str, Any] | None = None,
    streaming: bool = False,
    open_folder: Callable[[Path, str | None], EvaluatedRun] | None = None,
    perplexity_of: PerplexityOf | None = None,
) -> ScoreReport:
    """Score a network on a split of its data, and write the report into its folder.

    Exports pass their own `open_folder` and `perplexity_of`; the defaults are those of a run.
    """
    run = (open_folder or _open_run)(folder, model)
    prepared = data_of(run, data)
    about: dict[str, Any] = dict(
        run=str(folder),
        model=run.weights.name,
        parameters=run.model.num_parameters(),
        split=split,
        data=str(prepared.folder),
        machine=describe_machine(),
    )
    started = time.perf_counter()
    if run.card.task == LANGUAGE_MODELLING:
        if baseline is not None:
            raise ValueError("a language model has no outputs to compare: leave out --baseline")
        found = (perplexity_of or _perplexity_of_run)(run, prepared, split, streaming)
        scores: Sequence[Score] = _perplexities(found)
        comparisons: Sequence[Comparison] = []
    else:
        if streaming:
            raise ValueError("--streaming is for language models only: leave it out")
        settings = generation_settings(run, prepared).changed(changes or {})
        sources, references = prepared.texts(split)
        outputs = _generate(run, settings, sources, split)
        about |= {"generation": asdict(settings), "lines": len(references)}
        about["generation_seconds"] = round(time.perf_counter() - started, 3)
        lines = _Lines(run, outputs, references, baseline)
        scores, comparisons = lines.scores(), lines.comparisons()
        text = "".join(f"{output.text}\n" for output in outputs)
        write_text(outputs_path(folder, split), text)
    about["seconds"] = round(time.perf_counter() - started, 3)
    title = f"{run.card.recipe}, {run.weights.name}, {split}"
    report = ScoreReport(title, scores, paper_scores(run.card.paper), comparisons, about)
    report.write(report_path(folder, split, streaming=streaming))
    is_changed = any(value is not None for value in (changes or {}).values())
    # An export has its own README, and scores with changed settings are not those of the run.
    if open_folder is None and not streaming and not is_changed:
        _write_model_card(run, split, scores)
    return report


def _write_model_card(run: EvaluatedRun, split: str, scores: Sequence[Score]) -> None:
    # It imports huggingface_hub, which is not needed to score an export.
    from talkconv.runs.model_card import write_scores

    write_scores(run.weights, run.card, split, {each.name: each.value for each in scores})


def _generate(
    run: EvaluatedRun, settings: GenerationSettings, sources: Sequence[str], split: str
) -> list[Output]:
    generator = TextGenerator(run.model, run.tokenizer, settings, run.target_tokenizer)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not can_redraw(console)) as progress:
        task = progress.add_task(f"{split}, beam {settings.num_beams}", total=len(sources))
        written = generator.outputs(sources, on_done=partial(progress.advance, task))
        return [output for (output,) in written]


class _Texts(NamedTuple):
    """Outputs, references and, if there are any, the outputs of a baseline."""

    outputs: list[str]
    references: list[str]
    baseline: list[str] | None

    def unescaped(self) -> "_Texts":
        """Return the same words without Moses' escapes such as &apos;."""
        outputs, references = ([*map(unescape, side)] for side in self[:2])
        baseline = None if self.baseline is None else [*map(unescape, self.baseline)]
        return _Texts(outputs, references, baseline)


class _Lines:
    """Outputs and references of a run, raw or tokenized as each metric needs them."""

    def __init__(
        self,
        run: EvaluatedRun,
        outputs: Sequence[Output],
        references: Sequence[str],
        baseline: Path | None,
    ) -> None:
        tokenizer: Any = run.target_tokenizer
        other = None if baseline is None else lines_of(baseline)
        if other is not None and len(other) != len(references):
            raise ValueError(
                f"{baseline} has {len(other)} lines and the split has {len(references)}: "
                "it must hold an output for each source of the split"
            )
        self.raw = _Texts([output.text for output in outputs], list(references), other)
        self.tokenized = _Texts(
            [tokenizer.decode_tokenized(output.tokens) for output in outputs],
            [tokenizer.tokenized_text(line) for line in references],
            None if other is None else [tokenizer.tokenized_text(line) for line in other],
        )
        # ROUGE would count the letters of an escape as a word
        self.words = self.tokenized.unescaped()
        self.metrics = run_metrics(run, self.words.references)

    def _texts(self, metric: Metric) -> _Texts:
        if metric in [bleu_metric(name) for name in TOKENIZED_PROTOCOLS]:
            return self.tokenized
        # In text tokenized by Moses, the full stop of a sentence differs from an abbreviation's.
        by_sentences = isinstance(metric, RougeMetric) and metric.kind == BY_SENTENCES
        return self.words if by_sentences else self.raw

    def scores(self) -> list[Score]:
        found = []
        for metric in self.metrics:
            texts = self._texts(metric)
            found.append(score(metric, texts.outputs, texts.references, interval=True))
        return found

    def comparisons(self) -> list[Comparison]:
        found = []
        for metric in self.metrics:
            outputs, references, other = self._texts(metric)
            if other is not None:
                found.append(paired_bootstrap(metric, outputs, other, references))
        return found


def run_metrics(run: EvaluatedRun, references: Sequence[str]) -> list[Metric]:
    """Return all metrics in use for a run's task and languages.

    `references` are tokenized: ROUGE finds the ends of sentences in them.
    """
    if run.card.task == SUMMARIZATION:
        return [*rouge_metrics(references)]
    protocols = ["tokenized"]
    if (run.card.source_lang, run.card.target_lang) == ("en", "de"):
        protocols.append("compound")
    protocols += ["sacrebleu-lc", "chrf-lc"] if writes_lowercase(run) else ["sacrebleu", "chrf"]
    return metrics_of(protocols, references)


def writes_lowercase(run: EvaluatedRun) -> bool:
    """Return whether a run's network writes no capitals, which its references may have."""
    return bool(run.target_tokenizer.init_kwargs.get("lowercase"))


def data_of(run: EvaluatedRun, data: Path | None) -> Prepared:
    """Open the prepared folder that a run was trained on, or another with the same vocabulary."""
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


def generation_settings(run: EvaluatedRun, prepared: Prepared) -> GenerationSettings:
    """Return the run's settings, with sources cut where those of its training were."""
    return run.card.generation.reading_at_most(prepared.settings.max_source_tokens)


def _open_run(folder: Path, model: str | None) -> EvaluatedRun:
    # torch and transformers take seconds to import, and exported networks do not need them
    from talkconv.runs.open_run import open_run

    return open_run(folder, model)


def context_of(block: int) -> int:
    """Return how many tokens of a block are only context for the others."""
    return block * 3 // 4


def _perplexity_of_run(
    run: EvaluatedRun, prepared: Prepared, split: str, streaming: bool
) -> Perplexity:
    # it needs torch
    from talkconv.evaluation.perplexity import perplexity, streamed_perplexity

    tokens = [token for row in prepared.split(split)["tokens"] for token in row]
    words = words_of_lines(prepared.lines(split))
    if streaming:
        return streamed_perplexity(run.model, tokens, words=words)
    block = prepared.settings.block
    return perplexity(run.model, tokens, block=block, context=context_of(block), words=words)


def _perplexities(found: Perplexity) -> list[Score]:
    values = {"perplexity per token": found.per_token, "perplexity per word": found.per_word}
    return [
        Score(name, value, f"{name} = {value:.2f}", found.signature)
        for name, value in values.items()
        if value is not None
    ]
