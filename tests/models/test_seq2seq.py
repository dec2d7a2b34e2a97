import itertools
import warnings

import pytest
import torch
from torch.ao.quantization import quantize_dynamic
from transformers import AutoConfig, AutoModelForSeq2SeqLM

from talkconv.layers import CrossAttention
from talkconv.models import TaLKConvConfig, TaLKConvForConditionalGeneration
from tests.models.cases import MIXERS, seq2seq, tokens


def near(actual, expected, tolerance=1e-5):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mixer", MIXERS)
@torch.no_grad()
def test_padding_of_the_source_changes_nothing(mixer):
    model = seq2seq(encoder_mixer=mixer)
    source, target = tokens(2, 9), tokens(2, 5, seed=1)
    source[1, 6:] = model.config.pad_token_id
    batch = model(source, decoder_input_ids=target).logits
    near(batch[1], model(source[1:, :6], decoder_input_ids=target[1:]).logits[0])
    mask = (source != model.config.pad_token_id).long()
    near(batch, model(source, attention_mask=mask, decoder_input_ids=target).logits)


@torch.no_grad()
def test_the_decoder_does_not_look_ahead():
    model = seq2seq()
    source, target = tokens(1, 6), tokens(1, 7, seed=1)
    whole = model(source, decoder_input_ids=target).logits
    near(whole[:, :4], model(source, decoder_input_ids=target[:, :4]).logits)


def test_labels_are_shifted_and_smoothed():
    model = seq2seq(label_smoothing=0.1)
    source, labels = tokens(2, 6), tokens(2, 4, seed=1)
    labels[1, 2:] = -100
    output = model(source, labels=labels)
    start, pad = model.config.decoder_start_token_id, model.config.pad_token_id
    fed = torch.tensor([[start, *labels[0, :3]], [start, *labels[1, :2], pad]])
    assert torch.equal(model.prepare_decoder_input_ids_from_labels(labels), fed)
    scores = model(source, decoder_input_ids=fed).logits.log_softmax(-1)
    expected = [
        -0.9 * scores[row, t, labels[row, t]] - 0.1 * scores[row, t].mean()
        for row, t in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
    ]
    near(output.loss, torch.stack(expected).mean())
    near(model(source, labels=labels, num_items_in_batch=12).loss, output.loss / 2)


@pytest.mark.parametrize(
    ("sharing", "tables"),
    [
        (dict(share_embeddings=True, encoder_vocab_size=None), 1),
        (dict(tie_word_embeddings=True), 2),
        (dict(tie_word_embeddings=False), 3),
    ],
)
@torch.no_grad()
def test_survives_a_folder_with_its_ties(tmp_path, sharing, tables):
    model = seq2seq(**sharing)
    model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    read = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert isinstance(read, TaLKConvForConditionalGeneration)
    assert isinstance(AutoConfig.from_pretrained(tmp_path), TaLKConvConfig)
    for network in (model, read):
        found = {
            network.encoder.embed_tokens.weight,
            network.decoder.embed_tokens.weight,
            network.lm_head.weight,
        }
        assert len(found) == tables
    source, target = tokens(2, 5), tokens(2, 4)
    expected = model(source, decoder_input_ids=target).logits
    assert torch.equal(read(source, decoder_input_ids=target).logits, expected)


@pytest.mark.parametrize("mixer", MIXERS)
def test_generates_the_same_with_and_without_a_cache(mixer):
    model = seq2seq(decoder_mixer=mixer)
    source = tokens(3, 7)
    source[2, 4:] = model.config.pad_token_id
    ways = [
        dict(),
        dict(num_beams=4),
        dict(num_beams=4, length_penalty=2.0, no_repeat_ngram_size=2, num_return_sequences=3),
        dict(do_sample=True, top_k=5, num_return_sequences=2),
    ]
    for settings in ways:
        runs = []
        for use_cache in (True, False):
            torch.manual_seed(0)
            runs.append(
                model.generate(source, max_new_tokens=9, use_cache=use_cache, **settings).tolist()
            )
        assert runs[0] == runs[1], settings


def test_sentences_of_a_batch_do_not_see_one_another():
    model = seq2seq()
    source = tokens(4, 7)
    source[1, 5:] = source[3, 2:] = model.config.pad_token_id
    settings = dict(num_beams=3, max_new_tokens=8, min_new_tokens=8)
    together = model.generate(source, **settings)
    for row, length in enumerate([7, 5, 7, 2]):
        alone = model.generate(source[row : row + 1, :length], **settings)
        assert torch.equal(together[row], alone[0])


def test_no_ngram_is_repeated():
    model = seq2seq()
    written = model.generate(tokens(2, 5), max_new_tokens=20, min_new_tokens=20, num_beams=2)
    unrepeated = model.generate(
        tokens(2, 5), max_new_tokens=20, min_new_tokens=20, num_beams=2, no_repeat_ngram_size=2
    )
    pairs = [list(itertools.pairwise(row[1:].tolist())) for row in unrepeated]
    assert all(len(set(row)) == len(row) for row in pairs)
    assert not torch.equal(written, unrepeated)


def exhaustive(model, source, length):
    """Return the best of all translations of `length` words, by total log-probability."""
    words = range(model.config.vocab_size)
    start = model.config.decoder_start_token_id
    every = torch.tensor(list(itertools.product(words, repeat=length)))
    fed = torch.cat((torch.full((len(every), 1), start), every[:, :-1]), dim=1)
    scores = model(source, decoder_input_ids=fed).logits.log_softmax(-1)
    totals = scores.gather(2, every[..., None]).sum(dim=(1, 2))
    return every[totals.argmax()], totals.max()


@pytest.mark.parametrize("mixer", MIXERS)
@torch.no_grad()
def test_a_beam_as_wide_as_the_vocabulary_finds_what_exhaustive_search_finds(mixer):
    model = seq2seq(vocab_size=9, decoder_mixer=mixer, decoder_l_max=[2, 1])
    for seed in range(4):
        source = tokens(1, 5, seed=seed)
        best, score = exhaustive(model, source, length=2)
        # no end token, so that all beams have the two words
        found = model.generate(
            source,
            num_beams=9,
            max_new_tokens=2,
            eos_token_id=None,
            length_penalty=0.0,
            return_dict_in_generate=True,
            output_scores=True,
        )
        assert found.sequences[0, 1:].tolist() == best.tolist()
        near(found.sequences_scores[0], score)


def grads(model, **inputs):
    model.zero_grad()
    model(**inputs).loss.backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def test_gradient_checkpointing_gives_the_same_gradients():
    model = seq2seq().train()
    inputs = dict(input_ids=tokens(2, 6), labels=tokens(2, 5, seed=1))
    expected = grads(model, **inputs)
    model.gradient_checkpointing_enable()
    assert model.encoder.gradient_checkpointing
    for actual, wanted in zip(grads(model, **inputs), expected, strict=True):
        near(actual, wanted)


@torch.no_grad()
def test_hidden_states_and_tuples():
    model = seq2seq()
    inputs = dict(input_ids=tokens(2, 6), decoder_input_ids=tokens(2, 5))
    output = model(**inputs, output_hidden_states=True)
    assert (len(output.encoder_hidden_states), len(output.decoder_hidden_states)) == (3, 4)
    assert torch.equal(model(**inputs, return_dict=False)[0], output.logits)
    again = model(encoder_outputs=(output.encoder_last_hidden_state,), **inputs)
    assert torch.equal(again.logits, output.logits)
    last = model(**inputs, logits_to_keep=1).logits
    near(last, output.logits[:, -1:])


@pytest.mark.slow
def test_compiles_as_one_graph():
    model = seq2seq()
    source, target = tokens(2, 6), tokens(2, 5)
    compiled = torch.compile(model, fullgraph=True)
    near(
        compiled(source, decoder_input_ids=target).logits,
        model(source, decoder_input_ids=target).logits,
    )


@torch.no_grad()
def test_a_final_norm_changes_the_last_states_alone():
    model = seq2seq(final_norm=True)
    inputs = dict(input_ids=tokens(2, 6), decoder_input_ids=tokens(2, 4, seed=1))
    inputs["encoder_outputs"] = model.encoder(inputs["input_ids"])
    for stack, call in (
        (model.encoder, lambda: model.encoder(inputs["input_ids"], output_hidden_states=True)[1]),
        (model.decoder, lambda: model(**inputs, output_hidden_states=True).decoder_hidden_states),
    ):
        *normed, last = call()
        norm, stack.norm = stack.norm, torch.nn.Identity()
        *plain, before = call()
        stack.norm = norm
        assert all(map(torch.equal, normed, plain))
        near(last, norm(before))
        assert not torch.equal(last, before)


def test_what_is_missing_is_told():
    for side, cure in (
        ("encoder", "TaLKConvForCausalLM has none"),
        ("decoder", "TaLKConvModel may"),
    ):
        with pytest.raises(ValueError, match=f"{side}_l_max is empty. {cure}"):
            TaLKConvForConditionalGeneration(TaLKConvConfig(**{f"{side}_l_max": []}))
    with pytest.raises(ValueError, match="give decoder_input_ids"):
        seq2seq()(tokens(1, 3))
    with pytest.raises(ValueError, match="give input_ids"):
        seq2seq()(decoder_input_ids=tokens(1, 3))
    with pytest.raises(ValueError, match="cache_implementation must be left unset"):
        seq2seq().generate(tokens(1, 3), cache_implementation="static", max_new_tokens=2)
    with pytest.raises(NotImplementedError, match="two vocabularies"):
        seq2seq().resize_token_embeddings(40)


@torch.no_grad()
def test_a_shared_vocabulary_can_be_resized():
    model = seq2seq(share_embeddings=True, encoder_vocab_size=None)
    source, target = tokens(2, 5), tokens(2, 4)
    before = model(source, decoder_input_ids=target).logits
    model.resize_token_embeddings(40)
    assert model.encoder.embed_tokens.weight is model.lm_head.weight
    assert model.config.vocab_size == 40
    after = model(source, decoder_input_ids=target).logits
    near(after[..., :29], before)


def test_a_quantized_network_generates():
    model = seq2seq()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    assert not list(small.decoder.layers[0].mixer_unit.mixer.parameters())
    source = tokens(3, 6)
    settings = dict(num_beams=3, max_new_tokens=5, eos_token_id=None)
    assert small.generate(source, **settings).shape == model.generate(source, **settings).shape


def test_cross_attention_starts_in_a_network_as_it_starts_alone():
    """fairseq draws queries, keys and values with a gain of the square root of one half."""
    dim = 64
    config = TaLKConvConfig(vocab_size=29, dim=dim, heads=4, encoder_l_max=[1], decoder_l_max=[1])
    network = TaLKConvForConditionalGeneration(config).decoder.blocks[0].cross_attention
    alone = CrossAttention(dim, heads=4)
    for name in ("to_query", "to_key", "to_value", "to_out"):
        gain = 1.0 if name == "to_out" else 0.5**0.5
        largest = gain * (6 / (2 * dim)) ** 0.5
        for attention in (network, alone):
            weight = attention.get_submodule(name).weight
            assert 0.98 * largest < weight.abs().max() <= largest, name
