"""Measures how fast a run trains and generates.

Several trainings run at once, so their logs say little about speed. This repeats a few steps of a
run's training and translates a part of its test set while nothing else runs.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from talkconv.conventions import LANGUAGE_MODELLING
from talkconv.evaluation.evaluate_run import data_of, generation_settings
from talkconv.files import write_json
from talkconv.generation.text_generator import TextGenerator
from talkconv.machine import describe_machine
from talkconv.report.kept_run import SPEED
from talkconv.runs.card import RunCard
from talkconv.runs.open_run import Run, open_run
from talkconv.training.log_file import read_log
from talkconv.training.resumed_recipe import RECIPE
from talkconv.training.train import train

# Steps are timed in parts, of which the median counts. The first part warms up.
PARTS, STEPS = 5, 20
SENTENCES = 200


def write_speed(run: Path, *, steps: int = STEPS, sentences: int = SENTENCES) -> dict[str, Any]:
    """Measure the speed of a run and write it into its folder."""
    speed: dict[str, Any] = {"machine": describe_machine(), "steps": steps * (PARTS - 1)}
    speed["training_tokens_per_second"] = round(training_speed(run, steps))
    opened = open_run(run)
    if opened.card.task != LANGUAGE_MODELLING:
        speed["sentences"] = sentences
        speed["generation_sentences_per_second"] = round(generation_speed(opened, sentences), 2)
    write_json(run / SPEED, speed)
    return speed


def training_speed(run: Path, steps: int = STEPS) -> float:
    """Return the target tokens per second of the run's own training, without validation."""
    card = RunCard.read(run)
    assert card.data is not None, "a run that was trained knows its data"
    never = PARTS * steps + 1
    changes = {
        "max_steps": PARTS * steps,
        "log_every": steps,
        "validate_every": never,
        "save_every": never,
        "warmup_steps": 1,
    }
    with tempfile.TemporaryDirectory(prefix="talkconv-speed-") as folder:
        out = Path(folder) / "run"
        settings = {f"training.{key}": value for key, value in changes.items()}
        train(run / RECIPE, settings, data=card.data, out=out, quiet=True)
        parts = [each for each in read_log(out) if "tokens_per_second" in each]
    return statistics.median(float(each["tokens_per_second"]) for each in parts[1:])


def generation_speed(run: Run, sentences: int = SENTENCES) -> float:
    """Return the outputs per second for the first sentences of the test set."""
    prepared = data_of(run, None)
    sources = prepared.texts("test")[0][:sentences]
    settings = generation_settings(run, prepared)
    generator = TextGenerator(run.model, run.tokenizer, settings, run.target_tokenizer)
    started = time.perf_counter()
    written = sum(1 for _ in generator.outputs(sources))
    return written / (time.perf_counter() - started)
