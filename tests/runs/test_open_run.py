import json

import pytest

from talkconv.models.dictionary import tokenizer_of
from talkconv.runs.card import CARD, RunCard
from talkconv.runs.generation_settings import GenerationSettings
from talkconv.runs.open_run import open_run
from tests.models.cases import language_model, seq2seq


def test_a_card_survives_a_round_trip(tmp_path):
    card = RunCard(
        task="translation",
        recipe="wmt16_en_de",
        data="/data/wmt16",
        fingerprint="abc",
        source_lang="de",
        target_lang="en",
        generation=GenerationSettings(num_beams=4, length_penalty=0.6),
        paper={"metric": "BLEU", "score": 28.4, "table": 1},
        metric="bleu",
        model="averaged",
    )
    card.write(tmp_path)
    assert RunCard.read(tmp_path) == card


def test_reading_a_missing_card_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"no run\.json"):
        RunCard.read(tmp_path)


def test_reading_rejects_an_unknown_key(tmp_path):
    (tmp_path / CARD).write_text(json.dumps({"task": "translation", "generation": {}, "x": 1}))
    with pytest.raises(ValueError, match="key 'x'"):
        RunCard.read(tmp_path)


def test_reading_rejects_a_task_it_does_not_know(tmp_path):
    (tmp_path / CARD).write_text(json.dumps({"task": "poetry", "recipe": "r", "generation": {}}))
    with pytest.raises(ValueError, match="poetry"):
        RunCard.read(tmp_path)


def test_open_run_reads_a_plain_model_folder(tmp_path):
    model = seq2seq()
    model.save_pretrained(tmp_path)
    tokenizer_of(["<s>", "<pad>", "</s>", "<unk>", "a", "b"]).save_pretrained(tmp_path)
    run = open_run(tmp_path)
    assert run.card.task == "translation"
    assert run.model.config.is_encoder_decoder
    assert run.target_tokenizer is run.tokenizer


def test_open_run_prefers_the_card(tmp_path):
    best, averaged = tmp_path / "best", tmp_path / "averaged"
    for folder in (best, averaged):
        folder.mkdir()
        model = language_model()
        model.save_pretrained(folder)
        tokenizer_of(["<s>", "<pad>", "</s>", "<unk>", "a", "b"]).save_pretrained(folder)
    card = RunCard(task="language_modelling", recipe="wikitext2", model="averaged")
    card.write(tmp_path)
    assert open_run(tmp_path).weights.name == "averaged"
    assert open_run(tmp_path, model="best").weights.name == "best"
    with pytest.raises(ValueError, match="has no model"):
        open_run(tmp_path, model="last")


def test_open_run_needs_a_real_folder(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        open_run(tmp_path / "nope")
