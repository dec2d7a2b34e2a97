"""Whole runs on prepared data, for tests of commands: untrained networks, real tokenizers."""

from pathlib import Path

import torch

from talkconv.data.prepare import prepare
from talkconv.data.prepared import Prepared
from talkconv.runs.card import RunCard
from talkconv.runs.generation_settings import GenerationSettings
from tests.data.cases import ENGLISH, PAIRS, SUMMARIES, WORDS, write, write_pairs, write_text
from tests.models.cases import language_model, seq2seq

SETTINGS = GenerationSettings(num_beams=2, max_length=8)


def translation(folder: Path, settings=PAIRS) -> Prepared:
    return prepare("translation", settings, write_pairs(folder / "raw"), folder / "data", workers=1)


def summarization(folder: Path) -> Prepared:
    for split in ("train", "valid", "test"):
        write(folder / "raw" / f"{split}.source", [f"{line} {line}" for line in ENGLISH])
        write(folder / "raw" / f"{split}.summary", ENGLISH)
    return prepare("summarization", SUMMARIES, folder / "raw", folder / "data", workers=1)


def language_modelling(folder: Path) -> Prepared:
    return prepare(
        "language_modelling", WORDS, write_text(folder / "raw"), folder / "data", workers=1
    )


def network(prepared: Prepared):
    torch.manual_seed(0)
    size = len(prepared.tokenizer())
    if prepared.task == "language_modelling":
        return language_model(vocab_size=size)
    return seq2seq(vocab_size=size, encoder_vocab_size=size)


def run_on(prepared: Prepared, folder: Path, *, names=("best",), **card) -> Path:
    """Write a run folder of an untrained network."""
    for name in names:
        network(prepared).save_pretrained(folder / name)
        prepared.tokenizer().save_pretrained(folder / name)
    known = dict(
        task=prepared.task,
        recipe="small",
        data=str(prepared.folder),
        fingerprint=prepared.fingerprint,
        source_lang=prepared.settings.source_lang,
        target_lang=prepared.settings.target_lang,
        generation=SETTINGS,
    )
    RunCard(**{**known, **card}).write(folder)
    return folder
