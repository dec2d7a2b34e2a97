"""Small runs to export: untrained networks with real tokenizers, on data that was prepared."""

from pathlib import Path

import torch

from talkconv.runs.card import RunCard
from talkconv.runs.generation_settings import GenerationSettings
from tests.evaluation import runs
from tests.models.cases import language_model, seq2seq

# sources of several lengths, with what Moses splits and escapes, and with unknown characters
LINES = [
    "Der Hund läuft.",
    "Ein Hund schläft nicht. Die Katze läuft, der Hund schläft!",
    "",
    "Katze",
    "Don't stop – 3 & 4 <s> 猫?",
    "Die Katze schläft. " * 6,
]


def translation_run(folder: Path) -> Path:
    """Make a run of a translator whose outputs have many lengths."""
    prepared = runs.translation(folder)
    size = len(prepared.tokenizer())
    torch.manual_seed(0)
    sizes = dict(vocab_size=size, encoder_vocab_size=size, encoder_l_max=[2], encoder_r_max=[3])
    network = seq2seq(**sizes, decoder_l_max=[1, 3])
    network.lm_head.weight.data[2] += 0.3 * torch.randn(16)
    return _save(prepared, network, folder / "run")


def language_model_run(folder: Path) -> Path:
    """Make a run of a language model."""
    prepared = runs.language_modelling(folder)
    torch.manual_seed(0)
    network = language_model(vocab_size=len(prepared.tokenizer()), decoder_l_max=[3])
    return _save(prepared, network, folder / "run")


def _save(prepared, network, folder: Path) -> Path:
    network.save_pretrained(folder / "best")
    prepared.tokenizer().save_pretrained(folder / "best")
    RunCard(
        task=prepared.task,
        recipe="small",
        data=str(prepared.folder),
        fingerprint=prepared.fingerprint,
        source_lang=prepared.settings.source_lang,
        target_lang=prepared.settings.target_lang,
        generation=GenerationSettings(num_beams=3, max_length=12),
    ).write(folder)
    return folder
