"""Tests that transformers has for all its models, written for ours.

The package of transformers does not contain its tests. These follow them. Tests that do not apply
to our models are skipped with a reason.
"""

import copy
import inspect

import pytest
import torch
from torch import nn
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    GenerationMixin,
)
from transformers.utils import ModelOutput

from talkconv.models import (
    TaLKConvCache,
    TaLKConvConfig,
    TaLKConvForCausalLM,
    TaLKConvForConditionalGeneration,
    TaLKConvForSequenceClassification,
    TaLKConvForTokenClassification,
    TaLKConvModel,
)
from tests.models.cases import MIXERS, SIZES, tokens

NOT_APPLICABLE = {
    "self-attention outputs": "mixers have windows; cross-attention is tested below",
    "attention implementations (eager, SDPA, flash, flex)": "there is no self-attention to replace",
    "head masks and pruning": "transformers removed them, and convolutions have no heads to prune",
    "static, quantized and offloaded caches": "the cache has a constant size; others are refused",
    "assisted generation and prompt lookup": "the state cannot be rolled back far enough; refused",
    "continuous batching": "needs a paged cache of keys and values",
    "feed-forward chunking": "not offered: no setting asks for it",
    "images, audio, and several modalities": "networks read text",
    "tensor parallel plans": "none are offered; FSDP and DDP are tested in tests/training",
    "pickled checkpoints": "only safetensors are written, and no pickle is ever read",
}

ENCODER = dict(encoder_l_max=[1, 3], encoder_r_max=[1, 3])
CONFIGS = {
    "seq2seq": (TaLKConvForConditionalGeneration, dict(**ENCODER, encoder_vocab_size=23)),
    "shared": (TaLKConvForConditionalGeneration, dict(**ENCODER, share_embeddings=True)),
    "untied": (TaLKConvForConditionalGeneration, dict(**ENCODER, tie_word_embeddings=False)),
    "lm": (TaLKConvForCausalLM, dict(encoder_l_max=[])),
    "adaptive": (
        TaLKConvForCausalLM,
        dict(encoder_l_max=[], adaptive_cutoffs=[10, 20], adaptive_factor=2),
    ),
    "states of both": (TaLKConvModel, dict(**ENCODER, share_embeddings=True)),
    "states of a decoder": (TaLKConvModel, dict(encoder_l_max=[])),
    "states of an encoder": (TaLKConvModel, dict(**ENCODER, decoder_l_max=[])),
    "texts": (TaLKConvForSequenceClassification, dict(**ENCODER, num_labels=3)),
    "tokens": (TaLKConvForTokenClassification, dict(**ENCODER, num_labels=3)),
}
# saving notes these in the config
SAVED = dict(_name_or_path=None, architectures=None, dtype=None, transformers_version=None)
GENERATIVE = ["seq2seq", "shared", "untied", "lm", "adaptive"]
WITH_LABELS = [*GENERATIVE, "texts", "tokens"]
every_network = pytest.mark.parametrize("name", CONFIGS)


def make(name, **changes):
    kind, settings = CONFIGS[name]
    torch.manual_seed(0)
    return kind(TaLKConvConfig(**{**SIZES, **settings, **changes})).eval()


def inputs_of(model, labels=False):
    """Return a batch with a padded row; with labels if there can be a loss."""
    source = tokens(3, 7)
    source[1, 5:] = model.config.pad_token_id
    batch = dict(input_ids=source, attention_mask=(source != 1).long())
    target = tokens(3, 5, seed=1)
    if model.config.is_encoder_decoder and not labels:
        batch["decoder_input_ids"] = target
    if labels:
        batch["labels"] = {
            TaLKConvForConditionalGeneration: target,
            TaLKConvForCausalLM: source,
            TaLKConvForSequenceClassification: torch.tensor([0, 2, 1]),
            TaLKConvForTokenClassification: source % 3,
        }[type(model)]
    return batch


def tensors_of(value):
    """Return all tensors of an output or a tuple in their order, without those of a cache."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, ModelOutput):
        value = value.to_tuple()
    if isinstance(value, (tuple, list)):
        return [tensor for each in value for tensor in tensors_of(each)]
    return []


def near(actual, expected, tolerance=1e-5):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("check", NOT_APPLICABLE)
def test_does_not_apply(check):
    pytest.skip(f"{check}: {NOT_APPLICABLE[check]}")


@every_network
@torch.no_grad()
def test_the_same_input_gives_the_same_output(name):
    model = make(name)
    first, again = (tensors_of(model(**inputs_of(model))) for _ in range(2))
    assert first
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@every_network
@torch.no_grad()
def test_a_saved_network_answers_as_before(name, tmp_path):
    model = make(name)
    model.save_pretrained(tmp_path)
    assert [path.suffix for path in tmp_path.glob("model*")] == [".safetensors"]
    read, report = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    ours, theirs = ({**m.config.to_dict(), **SAVED} for m in (model, read))
    assert ours == theirs
    for ours, theirs in zip(
        tensors_of(model(**inputs_of(model))), tensors_of(read(**inputs_of(model))), strict=True
    ):
        assert torch.equal(ours, theirs)


@every_network
def test_auto_classes_find_the_network(name, tmp_path):
    model = make(name)
    model.save_pretrained(tmp_path)
    auto = {
        TaLKConvForConditionalGeneration: AutoModelForSeq2SeqLM,
        TaLKConvForCausalLM: AutoModelForCausalLM,
        TaLKConvModel: AutoModel,
        TaLKConvForSequenceClassification: AutoModelForSequenceClassification,
        TaLKConvForTokenClassification: AutoModelForTokenClassification,
    }[type(model)]
    assert type(auto.from_pretrained(tmp_path)) is type(model)
    assert type(auto.from_config(model.config)) is type(model)


@pytest.mark.parametrize("name", GENERATIVE)
@torch.no_grad()
def test_automodel_gives_the_states_behind_the_head(name, tmp_path):
    model = make(name)
    model.save_pretrained(tmp_path)
    read, report = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert all(key.startswith(("lm_head", "adaptive_softmax")) for key in report["unexpected_keys"])
    batch = inputs_of(model)
    hidden = model(**batch, output_hidden_states=True)
    last = hidden.decoder_hidden_states if "decoder_hidden_states" in hidden else hidden[-1]
    assert torch.equal(read(**batch).last_hidden_state, last[-1])


@every_network
def test_no_parameter_is_left_without_a_first_value(name):
    """_init_weights must set every parameter, because its memory may hold any values."""
    model = make(name)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))
    for module in model.modules():
        model._init_weights(module)
    for parameter_name, parameter in model.named_parameters():
        assert parameter.isfinite().all(), parameter_name


@every_network
def test_a_network_can_be_made_without_memory_and_loaded_into_it(name, tmp_path):
    model = make(name)
    with torch.device("meta"):
        empty = type(model)(model.config)
    assert all(parameter.is_meta for parameter in empty.parameters())
    model.save_pretrained(tmp_path)
    read = type(model).from_pretrained(tmp_path, device_map="cpu")
    assert not any(parameter.is_meta for parameter in read.parameters())


@every_network
def test_forward_takes_the_usual_names(name):
    names = list(inspect.signature(make(name).forward).parameters)
    assert names[:2] == ["input_ids", "attention_mask"]
    assert {"inputs_embeds", "output_attentions", "output_hidden_states"} <= set(names)


@every_network
@torch.no_grad()
def test_a_tuple_holds_the_same_as_an_output(name):
    model = make(name)
    batch = inputs_of(model, labels=name in WITH_LABELS)
    output = model(**batch, output_hidden_states=True)
    values = model(**batch, output_hidden_states=True, return_dict=False)
    assert isinstance(values, tuple)
    for a, b in zip(tensors_of(output), tensors_of(values), strict=True):
        assert torch.equal(a, b)


@every_network
@torch.no_grad()
def test_hidden_states_are_one_more_than_layers(name):
    model = make(name)
    batch = inputs_of(model)
    assert "hidden_states" not in model(**batch)
    output = model(**batch, output_hidden_states=True)
    if model.config.is_encoder_decoder:
        found = {3: output.encoder_hidden_states, 4: output.decoder_hidden_states}
    else:
        found = {model.config.num_layers + 1: output.hidden_states}
    for layers, states in found.items():
        assert len(states) == layers
        assert all(state.shape[0] == 3 and state.shape[2] == 16 for state in states)
    model.config.output_hidden_states = True
    assert len(tensors_of(model(**batch))) == len(tensors_of(output))


@pytest.mark.parametrize("name", WITH_LABELS)
def test_hidden_states_have_gradients(name):
    model = make(name)
    output = model(**inputs_of(model, labels=True), output_hidden_states=True)
    states = output.get("hidden_states", output.get("decoder_hidden_states"))
    states[0].retain_grad()
    output.loss.backward()
    assert states[0].grad.abs().sum() > 0


@pytest.mark.parametrize("name", ["seq2seq", "shared", "untied", "states of both"])
@torch.no_grad()
def test_cross_attentions_are_weights_over_the_source(name):
    model = make(name)
    batch = inputs_of(model)
    output = model(**batch, output_attentions=True)
    assert len(output.cross_attentions) == 3
    for weights in output.cross_attentions:
        assert weights.shape == (3, 2, 5, 7)
        near(weights.sum(dim=-1), torch.ones(3, 2, 5))
        assert weights[1, :, :, 5:].abs().max() == 0
    assert output.cross_attentions[0].std() > 0.01
    near(output[0], model(**batch)[0])
    # steps on a cache give the same, token by token
    cache = model.decoder.empty_cache(3)
    rows = [
        model(
            **{**batch, "decoder_input_ids": batch["decoder_input_ids"][:, at : at + 1]},
            past_key_values=cache,
            output_attentions=True,
        ).cross_attentions
        for at in range(5)
    ]
    for layer, weights in enumerate(output.cross_attentions):
        near(torch.cat([row[layer] for row in rows], dim=2), weights)


@pytest.mark.parametrize("name", ["lm", "states of an encoder", "texts", "tokens"])
def test_attentions_of_a_network_without_attention_are_refused(name):
    model = make(name)
    with pytest.raises(ValueError, match=r"this network has no such attention.*layer.offsets"):
        model(**inputs_of(model), output_attentions=True)


@torch.no_grad()
def test_generate_returns_cross_attentions():
    model = make("seq2seq")
    found = model.generate(
        tokens(2, 6),
        max_new_tokens=4,
        eos_token_id=None,
        return_dict_in_generate=True,
        output_attentions=True,
    )
    assert len(found.cross_attentions) == 4
    assert found.cross_attentions[0][0].shape == (2, 2, 1, 6)


@every_network
@torch.no_grad()
def test_embeddings_may_stand_for_ids(name):
    model = make(name)
    batch = inputs_of(model)
    expected = model(**batch)[0]
    ids = batch.pop("input_ids")
    near(model(**batch, inputs_embeds=model.get_input_embeddings()(ids))[0], expected)
    if model.config.is_encoder_decoder:
        embeds = model.decoder.embed_tokens(batch.pop("decoder_input_ids"))
        found = model(**batch, input_ids=ids, decoder_inputs_embeds=embeds)[0]
        near(found, expected)
        batch["decoder_inputs_embeds"] = embeds
    with pytest.raises(ValueError, match="either input_ids or inputs_embeds, and not both"):
        model(**batch, input_ids=ids, inputs_embeds=model.get_input_embeddings()(ids))
    with pytest.raises(ValueError, match="give"):
        model(attention_mask=batch["attention_mask"])


@every_network
def test_embeddings_can_be_replaced(name):
    model = make(name)
    old = model.get_input_embeddings()
    assert isinstance(old, nn.Module)
    new = copy.deepcopy(old)
    model.set_input_embeddings(new)
    assert model.get_input_embeddings() is new


@pytest.mark.parametrize("name", ["shared", "lm", "states of both", "texts", "tokens"])
@torch.no_grad()
def test_a_vocabulary_can_grow_and_shrink(name, tmp_path):
    model = make(name)
    batch = inputs_of(model)
    before = model(**batch)[0]
    for size in (40, 26):
        model.resize_token_embeddings(size)
        assert model.config.vocab_size == size
        assert model.get_input_embeddings().weight.shape[0] == size
        after = model(**batch)[0]
        if name in GENERATIVE:
            assert after.shape[-1] == size
            near(after[..., :26], before[..., :26])
        else:
            near(after, before)
    model.save_pretrained(tmp_path)
    assert torch.equal(type(model).from_pretrained(tmp_path)(**batch)[0], after)


@pytest.mark.parametrize("name", ["seq2seq", "untied", "adaptive"])
def test_vocabularies_that_cannot_grow_are_refused(name):
    with pytest.raises(NotImplementedError, match="cannot be resized"):
        make(name).resize_token_embeddings(40)


@every_network
def test_tied_weights_are_one_parameter_also_after_loading(name, tmp_path):
    model = make(name)
    model.save_pretrained(tmp_path)
    for network in (model, type(model).from_pretrained(tmp_path)):
        for tied, source in network.all_tied_weights_keys.items():
            assert network.get_parameter(tied) is network.get_parameter(source)
    expected = {"shared": 2, "seq2seq": 1, "untied": 0, "lm": 1, "states of both": 1}
    assert len(model.all_tied_weights_keys) == expected.get(name, 5 if name == "adaptive" else 0)


@pytest.mark.parametrize("name", WITH_LABELS)
def test_training_reaches_every_parameter(name):
    model = make(name).train()
    model(**inputs_of(model, labels=True)).loss.backward()
    without = [n for n, p in model.named_parameters() if p.grad is None]
    assert not without
    assert sum(p.grad.abs().sum() for p in model.parameters()) > 0


@pytest.mark.parametrize("name", WITH_LABELS)
@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_gives_the_same_gradients(name, reentrant):
    found = []
    for enable in (False, True):
        model = make(name).train()
        if enable:
            model.gradient_checkpointing_enable({"use_reentrant": reentrant})
            assert model.is_gradient_checkpointing
        model(**inputs_of(model, labels=True)).loss.backward()
        found.append([parameter.grad for parameter in model.parameters()])
    for without, with_it in zip(*found, strict=True):
        near(with_it, without)


@every_network
def test_frozen_networks_pass_gradients_to_adapters(name):
    """Adapters need gradients at the embeddings, so that they work with checkpointing."""
    model = make(name).train()
    for parameter in model.parameters():
        parameter.requires_grad = False
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    assert model(**inputs_of(model))[0].requires_grad


@pytest.mark.parametrize("name", ["texts", "tokens"])
def test_a_head_of_another_size_is_an_error_unless_it_may_be_new(name, tmp_path):
    make(name).save_pretrained(tmp_path)
    kind = CONFIGS[name][0]
    with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
        kind.from_pretrained(tmp_path, num_labels=7)
    wider = kind.from_pretrained(tmp_path, num_labels=7, ignore_mismatched_sizes=True)
    assert wider.classifier.out_features == 7


@every_network
@torch.no_grad()
def test_half_precision_is_kept(name, tmp_path):
    model = make(name).to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    read = type(model).from_pretrained(tmp_path)
    assert read.dtype == torch.bfloat16
    assert type(model).from_pretrained(tmp_path, dtype=torch.float32).dtype == torch.float32


@pytest.mark.parametrize("name", ["lm", "adaptive"])
@pytest.mark.parametrize("mixer", MIXERS)
@torch.no_grad()
def test_left_padding_changes_nothing(name, mixer):
    model = make(name, decoder_mixer=mixer)
    words = tokens(2, 6)
    padded = torch.cat((torch.full((2, 3), 1), words), dim=1)
    mask = (padded != 1).long()
    expected = model(words).logits[:, -1]
    near(model(padded, attention_mask=mask).logits[:, -1], expected)
    prompt = model.generate(words, max_new_tokens=4, eos_token_id=None)
    found = model.generate(padded, attention_mask=mask, max_new_tokens=4, eos_token_id=None)
    assert torch.equal(found[:, 9:], prompt[:, 6:])


@pytest.mark.parametrize("name", GENERATIVE)
@pytest.mark.parametrize("settings", [dict(), dict(num_beams=3), dict(do_sample=True)], ids=str)
def test_generate_returns_a_dictionary_too(name, settings):
    model = make(name)
    given = dict(max_new_tokens=4, eos_token_id=None, **settings)
    torch.manual_seed(0)
    plain = model.generate(tokens(2, 6), **given)
    torch.manual_seed(0)
    more = model.generate(
        tokens(2, 6), **given, return_dict_in_generate=True, output_scores=True, output_logits=True
    )
    assert torch.equal(more.sequences, plain)
    assert len(more.scores) == len(more.logits) == 4
    assert isinstance(more.past_key_values, TaLKConvCache)


@pytest.mark.parametrize("name", GENERATIVE)
@pytest.mark.parametrize("beams", [1, 3])
def test_generate_starts_from_embeddings(name, beams):
    model = make(name)
    source = tokens(2, 6)
    given = dict(max_new_tokens=4, eos_token_id=None, num_beams=beams)
    expected = model.generate(source, **given)
    found = model.generate(inputs_embeds=model.get_input_embeddings()(source), **given)
    # a language model returns only what is new, because it does not know the ids of the prompt
    assert torch.equal(found, expected[:, -found.shape[1] :])


@pytest.mark.parametrize("name", ["lm", "adaptive"])
def test_generate_goes_on_from_what_it_returned(name):
    model = make(name)
    given = dict(eos_token_id=None, return_dict_in_generate=True)
    whole = model.generate(tokens(2, 6), max_new_tokens=6, **given).sequences
    half = model.generate(tokens(2, 6), max_new_tokens=3, **given)
    rest = model.generate(
        half.sequences, past_key_values=half.past_key_values, max_new_tokens=3, **given
    )
    assert torch.equal(rest.sequences, whole)


@pytest.mark.parametrize("name", GENERATIVE)
def test_what_a_constant_state_cannot_do_is_refused(name):
    model = make(name)
    with pytest.raises(ValueError, match="assisted generation is not supported"):
        model.generate(tokens(1, 5), assistant_model=make(name), max_new_tokens=3)
    with pytest.raises(ValueError, match="cache_implementation must be left unset"):
        model.generate(tokens(1, 5), cache_implementation="static", max_new_tokens=3)


def test_only_networks_that_write_can_generate():
    for name, (kind, _) in CONFIGS.items():
        assert kind.can_generate() == (name in GENERATIVE)
        assert issubclass(kind, GenerationMixin) == (name in GENERATIVE)
