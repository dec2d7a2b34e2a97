import pytest
import torch
from transformers import AutoModelForCausalLM

from talkconv.models import TaLKConvConfig, TaLKConvForCausalLM
from tests.models.cases import MIXERS, language_model, tokens

ADAPTIVE = dict(adaptive_cutoffs=[10, 20], adaptive_factor=2)


def near(actual, expected, tolerance=1e-5):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", [ADAPTIVE, dict(), dict(tie_word_embeddings=False)])
def test_loss_is_that_of_the_next_words(kind):
    model = language_model(**kind)
    words = tokens(2, 7)
    words[1, 5:] = model.config.pad_token_id
    scores = model(words).logits.log_softmax(-1)
    expected = [-scores[0, t, words[0, t + 1]] for t in range(6)]
    expected += [-scores[1, t, words[1, t + 1]] for t in range(4)]
    expected = torch.stack(expected).mean()
    near(model(words, labels=words).loss, expected)
    near(model(words, labels=words, num_items_in_batch=20).loss, expected / 2)


def test_adaptive_words_add_up_to_one():
    near(language_model(**ADAPTIVE)(tokens(2, 4)).logits.exp().sum(-1), torch.ones(2, 4))


@pytest.mark.parametrize("kind", [ADAPTIVE, dict(), dict(tie_word_embeddings=False)])
@torch.no_grad()
def test_survives_a_folder_with_its_ties(tmp_path, kind):
    model = language_model(**kind)
    model.save_pretrained(tmp_path)
    read = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert isinstance(read, TaLKConvForCausalLM)
    assert read.num_parameters() == model.num_parameters()
    assert torch.equal(read(tokens(2, 5)).logits, model(tokens(2, 5)).logits)
    if kind is ADAPTIVE:
        for network in (model, read):
            embedding = network.decoder.embed_tokens
            softmax = network.adaptive_softmax
            for band in range(3):
                assert softmax.words[band] is embedding.embeddings[band].weight
            for band in (1, 2):
                assert softmax.projections[band - 1] is embedding.projections[band].weight


@pytest.mark.parametrize("mixer", MIXERS)
def test_left_padded_prompts_go_on_as_they_would_alone(mixer):
    model = language_model(decoder_mixer=mixer)
    words = tokens(3, 8)
    words[1, :5] = words[2, :1] = model.config.pad_token_id
    mask = (words != model.config.pad_token_id).long()
    for settings in (dict(), dict(num_beams=3), dict(prefill_chunk_size=3)):
        settings = dict(settings, max_new_tokens=7, min_new_tokens=7)
        together = model.generate(words, attention_mask=mask, **settings)
        for row, padding in enumerate([0, 5, 1]):
            alone = model.generate(words[row : row + 1, padding:], **settings)
            assert torch.equal(together[row, padding:], alone[0]), settings


def test_generates_the_same_with_and_without_a_cache():
    model = language_model(**ADAPTIVE)
    for settings in (dict(), dict(num_beams=3, num_return_sequences=2), dict(do_sample=True)):
        runs = []
        for use_cache in (True, False):
            torch.manual_seed(0)
            settings = dict(settings, max_new_tokens=9, use_cache=use_cache)
            runs.append(model.generate(tokens(2, 5), **settings).tolist())
        assert runs[0] == runs[1]


def test_generation_continues_from_a_given_cache():
    model = language_model()
    words = tokens(1, 6)
    whole = model.generate(words, max_new_tokens=8, min_new_tokens=8)
    cache = model.empty_cache(1)
    half = model.generate(words, max_new_tokens=4, min_new_tokens=4, past_key_values=cache)
    rest = model.generate(half, max_new_tokens=4, min_new_tokens=4, past_key_values=cache)
    assert torch.equal(rest, whole)


def test_gradient_checkpointing_gives_the_same_gradients():
    model = language_model(**ADAPTIVE).train()
    words = tokens(2, 6)
    found = []
    for enable in (False, True):
        if enable:
            model.gradient_checkpointing_enable()
        model.zero_grad()
        model(words, labels=words).loss.backward()
        found.append([parameter.grad.clone() for parameter in model.parameters()])
    for without, with_it in zip(*found, strict=True):
        near(with_it, without)


@pytest.mark.slow
def test_compiles_as_one_graph():
    model = language_model()
    compiled = torch.compile(model, fullgraph=True)
    near(compiled(tokens(2, 9)).logits, model(tokens(2, 9)).logits)


def test_an_encoder_is_refused():
    with pytest.raises(ValueError, match="make encoder_l_max empty, got 7 layers"):
        TaLKConvForCausalLM(TaLKConvConfig())
