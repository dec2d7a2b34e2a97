"""Tiny prepared folders of each task, and recipes that train on them in a second."""

import io
import os
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import tomli_w
from datasets import Dataset, Features, Sequence, Value
from rich.console import Console
from safetensors.torch import load_file
from torch import Tensor
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.data.data_settings import DataSettings
from talkconv.data.prepared import write_card
from talkconv.data.tokenizer import make_tokenizer
from talkconv.data.vocabulary import word_backend
from talkconv.training.log_file import read_log
from talkconv.training.record import Record
from talkconv.training.request import Outcome, Request
from talkconv.training.train_run import train_run

WORDS = [f"w{number}" for number in range(20)]
SETTINGS = dict(corpus="pairs", source_lang="de", target_lang="en")
MODEL = dict(dim=8, heads=2, ff_dim=16, encoder_l_max=[1, 3], decoder_l_max=[2])
TRAINING = dict(
    tokens=60,
    max_steps=12,
    warmup_steps=4,
    learning_rate=1e-2,
    validate_every=6,
    save_every=3,
    keep=3,
    log_every=2,
)


def sentences(number: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(2, 9)).tolist()) for _ in range(number)]


def write_prepared(folder: Path, task: str = "translation", rows: int = 40) -> Path:
    """Write a prepared folder of random sentences, each the translation of itself."""
    settings = DataSettings(**SETTINGS)
    tokenizer = make_tokenizer(word_backend(Counter(WORDS)), settings)
    folder.mkdir(parents=True)
    (folder / "text").mkdir()
    tokenizer.save_pretrained(folder / "tokenizer")
    counts = {}
    for seed, split in enumerate(["train", "valid", "test"]):
        lines = sentences(rows if split == "train" else 6, seed)
        _write_split(folder, split, task, lines, tokenizer)
        counts[split] = {"rows": len(lines)}
    write_card(
        folder, task=task, recipe="tiny", settings=settings, splits=counts, report={}, inputs=[]
    )
    return folder


def _write_split(folder, split, task, lines, tokenizer) -> None:
    ids = tokenizer(lines)["input_ids"]
    if task == "language_modelling":
        stream = [token for row in ids for token in row]
        columns = {"tokens": [stream[at : at + 16] for at in range(0, len(stream), 16)]}
        texts = {"txt": lines}
    else:
        columns = {"source": ids, "target": ids}
        texts = {"source": lines, "target": lines}
    kind = Sequence(Value("int32"))
    dataset = Dataset.from_dict(columns, features=Features(dict.fromkeys(columns, kind)))
    (folder / split).mkdir()
    dataset.save_to_disk(folder / "scratch")
    next((folder / "scratch").glob("*.arrow")).rename(folder / split / "part.arrow")
    for side, text in texts.items():
        (folder / "text" / f"{split}.{side}").write_text("".join(f"{line}\n" for line in text))


def write_recipe(path: Path, task: str = "translation", **sections) -> Path:
    model = MODEL if task != "language_modelling" else {**MODEL, "encoder_l_max": []}
    recipe = {
        "task": task,
        "data": SETTINGS,
        "model": {**model, **sections.get("model", {})},
        "training": {**TRAINING, **sections.get("training", {})},
        "generation": {"num_beams": 2, "max_length": 12, **sections.get("generation", {})},
    }
    path.write_text(tomli_w.dumps(recipe))
    return path


def run(request: Request, console: Console | None = None) -> Outcome:
    return train_run(request, console or Console(file=io.StringIO()))


def go_on(request: Request, *overrides: str) -> Request:
    return Request(request.recipe, overrides, request.data, request.out, resume=True)


def weights(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def losses(folder: Path) -> list[tuple[int, float]]:
    return [(line["step"], line["loss"]) for line in read_log(folder) if "loss" in line]


class StopAfter(Record):
    """Presses Ctrl-C when a step is done."""

    at = 0
    pressed = False

    def step(self, step):
        super().step(step)
        if step == self.at and not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)


def stop_at(monkeypatch, step) -> None:
    monkeypatch.setattr(StopAfter, "at", step)
    monkeypatch.setattr("talkconv.training.fit.Record", StopAfter)


def cli(*words) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["train", *map(str, words)], env={"COLUMNS": "400"})
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output
