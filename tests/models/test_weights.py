import argparse

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from talkconv.models.fairseq import CheckpointError, read_checkpoint
from talkconv.models.weights import network_of
from talkconv.runs.convert import convert

SEQ2SEQ = ["seq2seq_glu_prenorm", "seq2seq_glu_shared", "seq2seq_noglu_separate"]


def dictionaries(authors, name):
    return sorted(authors.glob(f"{name}.dict*"))


@pytest.mark.parametrize("name", SEQ2SEQ)
@torch.no_grad()
def test_translates_as_the_authors_networks_do(authors, tmp_path, name):
    convert(authors / f"{name}.pt", dictionaries(authors, name), tmp_path / "model")
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "model")
    theirs = torch.load(authors / f"{name}.io.pt")
    source = theirs["src_tokens"]
    output = model(source, decoder_input_ids=theirs["prev_output_tokens"])
    torch.testing.assert_close(output.logits, theirs["logits"], rtol=0, atol=1e-5)
    exists = source != model.config.pad_token_id
    states = output.encoder_last_hidden_state[exists]
    torch.testing.assert_close(states, theirs["encoder_out"][exists], rtol=0, atol=1e-5)


@torch.no_grad()
def test_predicts_words_as_the_authors_language_model_does(authors, tmp_path):
    name = "lm_adaptive"
    convert(authors / f"{name}.pt", dictionaries(authors, name), tmp_path / "model")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    theirs = torch.load(authors / f"{name}.io.pt")
    output = model(theirs["tokens"], output_hidden_states=True)
    torch.testing.assert_close(output.hidden_states[-1], theirs["hidden"], rtol=0, atol=1e-5)
    # log-probabilities go down to -91, where float32 has steps of 7.6e-6
    torch.testing.assert_close(output.logits, theirs["log_probs"], rtol=1e-6, atol=1e-5)
    exact = model.double()(theirs["tokens"]).logits
    torch.testing.assert_close(exact, theirs["log_probs"].double(), rtol=0, atol=1e-5)


def damaged(authors, tmp_path, damage):
    checkpoint = read_checkpoint(authors / "seq2seq_glu_shared.pt")
    content = {"args": argparse.Namespace(**checkpoint.args), "model": checkpoint.weights}
    damage(content)
    torch.save(content, tmp_path / "c.pt")
    return tmp_path / "c.pt"


def drop(name):
    return lambda content: content["model"].pop(name)


def replace(name, value):
    return lambda content: content["model"].update({name: value})


def setting(name, value):
    return lambda content: setattr(content["args"], name, value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop("encoder.layers.1.fc1.bias"), r"has no encoder.*widen.bias \(1 missing, 0 too many"),
        (replace("fc.weight", torch.ones(2)), r"has fc\.weight \(0 missing, 1 too many"),
        (replace("decoder.layers.0.fc1.bias", torch.ones(7)), r"must be \(48,\), got \(7,\)"),
        (replace("encoder.embed_tokens.weight", torch.ones(41, 32)), "are one parameter"),
        (drop("decoder.embed_tokens.weight"), "has no parameter 'decoder.embed_tokens.weight'"),
        (setting("encoder_layers", 5), "3 entries for 5 layers"),
        (setting("decoder_learned_pos", True), "decoder_learned_pos must be False"),
        (setting("encoder_attention_heads", 8), "encoder_attention_heads must be 4"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(authors, tmp_path, damage, message):
    with pytest.raises(CheckpointError, match=message):
        network_of(read_checkpoint(damaged(authors, tmp_path, damage)))
