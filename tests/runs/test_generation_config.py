import json
import os

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, GenerationConfig

from talkconv.generation.text_generator import generate_texts
from talkconv.runs.generation_config import as_generation_config, follow, write_generation_config
from talkconv.runs.generation_settings import GenerationSettings
from tests.evaluation.cases import language_model, texts, tokenizer, translator

SEVERAL = [
    GenerationSettings(num_beams=3, length_penalty=1.6),
    GenerationSettings(num_beams=4, no_repeat_ngram=2, min_length=5, max_length=9),
    GenerationSettings(num_beams=3, stepwise_length_penalty=-0.5, length_penalty=0.0),
    GenerationSettings(num_beams=3, max_ratio=0.5, max_extra=2),
    GenerationSettings(num_beams=1, max_length=30, max_ratio=1.0, max_extra=1),
]


def by_generate(model, lines, **options):
    """Return what a user of transformers gets who passes no settings, sentence by sentence."""
    words = tokenizer()
    found = []
    for line in lines:
        batch = words([line], return_tensors="pt")
        batch = {name: batch[name] for name in ("input_ids", "attention_mask")}
        output = model.generate(**batch, **options)
        found.append(words.decode(output[0], skip_special_tokens=True))
    return found


@pytest.mark.parametrize("settings", SEVERAL)
def test_a_saved_network_generates_as_the_command_does(settings, tmp_path):
    model, lines = translator(), texts(8)
    follow(model, settings)
    model.save_pretrained(tmp_path)
    expected = [o.text for (o,) in generate_texts(model, tokenizer(), lines, settings)]
    read = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert by_generate(read, lines) == expected
    assert expected != by_generate(translator(), lines, max_length=21)


def test_outputs_are_not_cut_at_twenty_tokens(tmp_path):
    model = translator()
    model.lm_head.weight.data[2] = 0
    follow(model, GenerationSettings(num_beams=2, min_length=40, max_ratio=9.0))
    model.save_pretrained(tmp_path)
    read = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert read.generate(torch.tensor([[5, 9, 2]])).shape[1] > 40


def test_a_batch_has_a_limit_for_each_sentence():
    model = translator()
    follow(model, GenerationSettings(num_beams=2, max_ratio=1.0, max_extra=0, min_length=1))
    model.generation_config.eos_token_id = None
    batch = tokenizer()(["w1 w2 w3 w4", "w5"], return_tensors="pt", padding=True)
    found = model.generate(**{name: batch[name] for name in ("input_ids", "attention_mask")})
    # the first token, then as many as the source has with its end
    assert [(row != 1).sum().item() for row in found] == [6, 3]


def test_samples_of_a_language_model(tmp_path):
    model = language_model()
    follow(model, GenerationSettings(temperature=0.7, top_p=0.9, top_k=5, max_length=6))
    model.save_pretrained(tmp_path)
    config = GenerationConfig.from_pretrained(tmp_path)
    assert (config.do_sample, config.temperature, config.top_p, config.top_k) == (True, 0.7, 0.9, 5)
    assert config.max_new_tokens == 6
    assert model.generate(torch.tensor([[5, 9]]), eos_token_id=None).shape == (1, 8)


def test_new_settings_replace_the_old_ones_and_keep_the_rest(tmp_path):
    model = translator()
    follow(model, GenerationSettings(temperature=0.7))
    model.save_pretrained(tmp_path)
    write_generation_config(tmp_path, GenerationSettings(num_beams=7, length_penalty=0.4))
    config = GenerationConfig.from_pretrained(tmp_path)
    assert (config.num_beams, config.length_penalty) == (7, 0.4)
    assert (config.do_sample, config.temperature) == (None, None)
    assert (config.eos_token_id, config.decoder_start_token_id) == (2, 2)
    config.validate(strict=True)


def test_a_linked_file_is_replaced_and_not_changed(tmp_path):
    (tmp_path / "best").mkdir()
    (tmp_path / "checkpoint").mkdir()
    old = tmp_path / "checkpoint" / "generation_config.json"
    old.write_text(json.dumps({"eos_token_id": 2, "num_beams": 3}))
    os.link(old, tmp_path / "best" / "generation_config.json")
    write_generation_config(tmp_path / "best", GenerationSettings(num_beams=7))
    assert json.loads(old.read_text())["num_beams"] == 3


@pytest.mark.parametrize("settings", [*SEVERAL, GenerationSettings(temperature=1.0)])
def test_transformers_accepts_to_save_the_settings(settings):
    GenerationConfig(**as_generation_config(settings)).validate(strict=True)


def test_a_length_in_the_call_counts_more_than_the_runs():
    model = translator()
    follow(model, GenerationSettings(num_beams=2, max_length=12, min_length=8, max_ratio=0.1))
    source = torch.tensor([[5, 9, 2]])
    most = dict(eos_token_id=None)
    assert model.generate(source, max_length=5, min_length=0, **most).shape[1] == 5
    assert model.generate(source, max_new_tokens=50, **most).shape[1] == 51
    config = GenerationConfig(max_length=30, num_beams=2)
    assert model.generate(source, config, **most).shape[1] == 30
