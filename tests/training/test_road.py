"""The whole road of each task on tiny files: prepare, train, generate, evaluate, average."""

import json

import pytest
from transformers import AutoModelForSeq2SeqLM
from typer.testing import CliRunner

from talkconv.cli import app
from talkconv.data.tokenizer import load_tokenizer
from tests.data.cases import write, write_pairs, write_segmented, write_text

SMALL = [
    "model.dim=8",
    "model.ff_dim=16",
    "model.heads=2",
    "model.decoder_l_max=[2]",
    "training.max_steps=4",
    "training.warmup_steps=1",
    "training.validate_every=2",
    "training.save_every=2",
    "generation.max_length=8",
]
TALK = ["The dog runs home.", "A cat sleeps all day.", "Nobody knows why dogs run."]


def write_summaries(folder):
    for split in ("train", "valid", "test"):
        write(folder / f"{split}.source", TALK * 4)
        write(folder / f"{split}.summary", ["dog runs", "cat sleeps", "why dogs run"] * 4)
    return folder


ROADS = {
    "multi30k_de_en": (write_pairs, ["data.vocabulary=60", "model.encoder_l_max=[2]"], "Ein Hund."),
    "multi30k_en_de": (write_segmented, ["model.encoder_l_max=[2]"], "the dog runs ."),
    "descriptions": (write_summaries, ["data.vocabulary=60", "model.encoder_l_max=[2]"], TALK[0]),
    "wikitext2": (write_text, ["data.block=8", "model.adaptive_cutoffs=[4]"], "one two"),
}
SCORES = {
    "multi30k_de_en": "BLEU",
    "multi30k_en_de": "BLEU",
    "descriptions": "ROUGE-L",
    "wikitext2": "perplexity",
}


def talkconv(*words, text=None) -> str:
    result = CliRunner().invoke(
        app, [str(word) for word in words], input=text, env={"COLUMNS": "200"}
    )
    assert result.exit_code == 0, result.output
    return result.output


def by_transformers(folder, line) -> str:
    """Return what a user of transformers gets who passes no settings."""
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), load_tokenizer(folder)
    outputs = model.generate(**tokenizer([line], return_tensors="pt"))
    return tokenizer.batch_decode(outputs, skip_special_tokens=True)[0]


@pytest.mark.parametrize("recipe", ROADS)
def test_from_raw_files_to_scores(recipe, tmp_path):
    write_raw, changes, line = ROADS[recipe]
    raw, data, run = write_raw(tmp_path / "raw"), tmp_path / "data", tmp_path / "run"
    overrides = [*SMALL, *changes]
    talkconv("prepare", recipe, *overrides, "--raw", raw, "--out", data, "--workers", 1)
    said = talkconv("train", recipe, *overrides, "--data", data, "--out", run)
    assert f"Next: talkconv evaluate {run}" in said
    # empty lines stay empty lines
    assert talkconv("generate", run, text=f"{line}\n\n{line}\n").split("\n")[1] == ""
    if recipe == "multi30k_de_en":
        assert by_transformers(run / "best", line) == talkconv("generate", run, text=line).strip()
    for split in {"multi30k_en_de": ["test", "test2017"]}.get(recipe, ["test"]):
        assert SCORES[recipe] in talkconv("evaluate", run, "--split", split)
        assert (run / "evaluation" / f"{split}.json").is_file()
        assert f"| {split} |" in (run / "best" / "README.md").read_text()
    assert "| valid |" in (run / "best" / "README.md").read_text()
    talkconv("average", run, "--last", 2)
    assert (run / "averaged" / "model.safetensors").is_file()
    # the scores of the best network are not those of the mean
    assert not (run / "averaged" / "README.md").exists()
    assert json.loads((run / "run.json").read_text())["recipe"] == recipe
