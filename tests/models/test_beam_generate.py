import itertools

import numpy as np
import pytest
import torch
from transformers import (
    GenerationConfig,
    GenerationMixin,
    LogitsProcessorList,
    MaxTimeCriteria,
    StoppingCriteriaList,
    TemperatureLogitsWarper,
)

from talkconv.models import TaLKConvCache, beam_generate
from talkconv.models.beam_generate import search
from talkconv.search.beam_search import BeamSettings
from talkconv.search.hypotheses import Rules
from tests.models.cases import language_model, seq2seq, tokens


def both(model, *inputs, monkeypatch, **settings):
    """Return the outputs of our search and of transformers' loop."""
    with monkeypatch.context() as patch:
        patch.setattr(GenerationMixin, "_beam_search", refuse)
        ours = model.generate(*inputs, **settings)
    theirs = GenerationMixin.generate(model, *inputs, past_key_values=TaLKConvCache(), **settings)
    return ours, theirs


def refuse(*args, **kwargs):
    raise AssertionError("the loop of transformers ran")


@pytest.mark.parametrize("early_stopping", [False, True, "never"])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0, -1.0])
# the best one of four is the only one of one
@pytest.mark.parametrize("returned", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_finds_what_transformers_finds(early_stopping, length_penalty, returned, monkeypatch):
    settings = dict(
        num_beams=4,
        early_stopping=early_stopping,
        length_penalty=length_penalty,
        num_return_sequences=returned,
    )
    lengths = set()
    for seed, most in itertools.product(range(3), (1, 2, 13)):
        torch.manual_seed(seed)
        model = seq2seq()
        # an end token that comes often
        model.lm_head.weight.data[2] += 0.3 * torch.randn(16)
        source = tokens(5, 7, seed=seed)
        ours, theirs = both(model, source, monkeypatch=monkeypatch, max_new_tokens=most, **settings)
        assert ours.tolist() == theirs.tolist()
        lengths.add(ours.shape[1])
    assert len(lengths) > 2


def lively(seed):
    """Return a network that ends early and repeats itself."""
    torch.manual_seed(seed)
    model = seq2seq()
    model.lm_head.weight.data[2] += 0.3 * torch.randn(16)
    return model


@pytest.mark.parametrize(
    "rules",
    [
        dict(no_repeat_ngram_size=1),
        dict(no_repeat_ngram_size=2),
        dict(no_repeat_ngram_size=3),
        dict(min_length=6),
        dict(min_new_tokens=4),
        dict(min_length=3, min_new_tokens=5, no_repeat_ngram_size=2),
    ],
    ids=str,
)
def test_rules_forbid_what_transformers_forbids(rules, monkeypatch):
    changed = 0
    for seed in range(4):
        model, source = lively(seed), tokens(5, 7, seed=seed)
        settings = dict(num_beams=3, max_new_tokens=12, num_return_sequences=3)
        ours, theirs = both(model, source, monkeypatch=monkeypatch, **settings, **rules)
        assert ours.tolist() == theirs.tolist()
        changed += ours.tolist() != model.generate(source, **settings).tolist()
    assert changed


def test_rules_count_the_prompt_of_a_language_model(monkeypatch):
    words = tokens(3, 6, vocab_size=7)
    words[1, :3] = 1
    settings = dict(num_beams=3, max_new_tokens=9, attention_mask=(words != 1).long())
    for rules in (dict(no_repeat_ngram_size=2), dict(min_length=9), dict(min_new_tokens=5)):
        ours, theirs = both(language_model(), words, monkeypatch=monkeypatch, **settings, **rules)
        assert ours.tolist() == theirs.tolist()


def test_rules_stay_on_the_fast_road(monkeypatch):
    monkeypatch.setattr(GenerationMixin, "_beam_search", refuse)
    rules = dict(no_repeat_ngram_size=3, min_new_tokens=2, num_beams=3, max_new_tokens=5)
    seq2seq().generate(tokens(2, 5), **rules)
    with pytest.raises(AssertionError, match="loop of transformers"):
        seq2seq().generate(tokens(2, 5), repetition_penalty=1.5, **rules)


def settings_of(**changes):
    plain = dict(num_beams=3, max_length=9, pad=1, length_penalty=1.0, rules=Rules(eos=(2,)))
    return BeamSettings(**{**plain, **changes})


def test_beam_search_finds_what_generate_finds():
    model, source = lively(0), tokens(4, 7)
    source[2, 4:] = 1
    mask = (source != 1).long()
    found = model.beam_search(source, settings_of(), mask).best(2)
    theirs = model.generate(
        source,
        attention_mask=mask,
        num_beams=3,
        max_length=9,
        num_return_sequences=2,
        length_penalty=1.0,
    )
    assert found.tokens.reshape(8, -1)[:, : theirs.shape[1]].tolist() == theirs.tolist()


def log_prob(model, source, output):
    """Return the log-probability of an output (T,) after its first token."""
    logits = model(source[None], decoder_input_ids=output[None, :-1]).logits[0]
    return logits.log_softmax(dim=-1).gather(1, output[1:, None]).sum()


@pytest.mark.parametrize(("length_penalty", "step_penalty"), [(0.0, 0.0), (1.0, 0.0), (0.7, 0.4)])
def test_scores_are_what_the_formula_says(length_penalty, step_penalty):
    model, source = lively(1), tokens(3, 6)
    settings = settings_of(length_penalty=length_penalty, step_penalty=step_penalty)
    found = model.beam_search(source, settings)
    for row, n in itertools.product(range(3), range(3)):
        written = int(found.lengths[row, n]) - 1
        output = torch.from_numpy(found.tokens[row, n, : written + 1])
        expected = log_prob(model, source[row], output) - step_penalty * written
        assert found.scores[row, n].item() == pytest.approx(
            expected.item() / written**length_penalty, abs=1e-4
        )


def outputs(model, source, **changes):
    return model.beam_search(source, settings_of(**changes)).best(1)


def test_the_less_a_step_costs_the_longer_the_outputs():
    model, source = lively(5), tokens(6, 6)
    lengths = [
        outputs(model, source, length_penalty=0.0, step_penalty=penalty).lengths.sum().item()
        for penalty in (0.0, -0.5, -2.0)
    ]
    assert lengths[0] < lengths[1] < lengths[2]


def test_a_step_penalty_leaves_means_in_their_order():
    model, source = lively(5), tokens(6, 6)
    plain, shifted = (outputs(model, source, step_penalty=penalty) for penalty in (0.0, 0.5))
    assert plain.tokens.tolist() == shifted.tokens.tolist()
    assert np.allclose(plain.scores - 0.5, shifted.scores, rtol=1e-5, atol=1e-4)


def test_each_sentence_has_its_own_limit():
    model, source = lively(2), tokens(4, 6)
    limits = np.array([2, 4, 7, 9])
    together = model.beam_search(source, settings_of(limits=limits)).best(1)
    assert (together.lengths[:, 0] <= limits).all()
    for row, limit in enumerate(limits.tolist()):
        alone = model.beam_search(source[row : row + 1], settings_of(max_length=limit)).best(1)
        assert together.tokens[row, 0, :limit].tolist() == alone.tokens[0, 0].tolist()
        assert together.scores[row].item() == pytest.approx(alone.scores[0].item(), abs=1e-5)


def test_rewards_take_a_sentence_to_its_limit_and_not_past_it():
    model, source = lively(2), tokens(3, 6)
    limits = np.array([3, 5, 9])
    greedy = settings_of(limits=limits, length_penalty=0.0, step_penalty=-9.0)
    assert model.beam_search(source, greedy).lengths.tolist() == [[3] * 3, [5] * 3, [9] * 3]


def test_more_beams_than_words_is_said():
    with pytest.raises(ValueError, match="num_beams must be at most 14 with 29 words, got 15"):
        seq2seq().beam_search(tokens(1, 3), settings_of(num_beams=15))


def test_several_tokens_may_end_a_sentence(monkeypatch):
    ours, theirs = both(
        seq2seq(),
        tokens(3, 5),
        monkeypatch=monkeypatch,
        num_beams=3,
        max_new_tokens=9,
        eos_token_id=[2, 5, 6, 7],
    )
    assert ours.tolist() == theirs.tolist()


def test_prompts_of_a_language_model(monkeypatch):
    words = tokens(3, 6)
    words[1, :3] = 1
    mask = (words != 1).long()
    settings = dict(num_beams=3, max_new_tokens=9, attention_mask=mask)
    ours, theirs = both(language_model(), words, monkeypatch=monkeypatch, **settings)
    assert ours.tolist() == theirs.tolist()


def test_greedy_search_is_a_beam_of_one(monkeypatch):
    lengths = set()
    for seed in range(4):
        model, source = lively(seed), tokens(5, 7, seed=seed)
        with monkeypatch.context() as patch:
            patch.setattr(GenerationMixin, "_sample", lambda *args, **kwargs: refuse())
            ours = model.generate(source, max_new_tokens=15)
        theirs = GenerationMixin.generate(
            model, source, past_key_values=TaLKConvCache(), max_new_tokens=15
        )
        assert ours.tolist() == theirs.tolist()
        lengths |= {(row != 1).sum().item() for row in ours}
    assert len(lengths) > 1


def test_settings_with_their_default_values_use_our_search(monkeypatch):
    both(
        seq2seq(),
        tokens(2, 5),
        monkeypatch=monkeypatch,
        num_beams=3,
        max_new_tokens=4,
        do_sample=False,
        temperature=1.0,
        top_p=0.9,
        repetition_penalty=1.0,
        use_cache=True,
        output_scores=False,
    )


def test_a_generation_config_is_followed(monkeypatch):
    model = seq2seq()
    config = GenerationConfig(num_beams=4, max_new_tokens=6, length_penalty=2.0)
    ours, theirs = both(model, tokens(3, 5), config, monkeypatch=monkeypatch)
    assert ours.tolist() == theirs.tolist()
    model.generation_config.num_beams = 4
    model.generation_config.length_penalty = 2.0
    assert model.generate(tokens(3, 5), max_new_tokens=6).tolist() == theirs.tolist()


@pytest.mark.parametrize(
    "settings",
    [
        dict(do_sample=True),
        dict(return_dict_in_generate=True),
        dict(use_cache=False),
        dict(repetition_penalty=1.2),
        dict(bad_words_ids=[[7]]),
        dict(logits_processor=LogitsProcessorList([lambda tokens, scores: scores])),
        dict(stopping_criteria=StoppingCriteriaList([MaxTimeCriteria(60)])),
    ],
    ids=lambda settings: ", ".join(settings),
)
def test_what_our_search_does_not_know_goes_to_transformers(settings, monkeypatch):
    monkeypatch.setattr(GenerationMixin, "_beam_search", refuse)
    with pytest.raises(AssertionError, match="the loop of transformers ran"):
        seq2seq().generate(tokens(2, 5), num_beams=3, max_new_tokens=4, **settings)


def test_a_decoder_goes_on_from_its_own_prompt(monkeypatch):
    prompt = tokens(3, 4, seed=3)
    settings = dict(num_beams=3, max_new_tokens=6, decoder_input_ids=prompt)
    ours, theirs = both(seq2seq(), tokens(3, 5), monkeypatch=monkeypatch, **settings)
    assert ours.tolist() == theirs.tolist()
    assert ours[:, :5].tolist() == [[2, *row] for row in prompt.tolist()]


def test_encoder_outputs_of_the_caller_are_used(monkeypatch):
    model, source = seq2seq(), tokens(3, 5)
    settings = dict(num_beams=3, max_new_tokens=6)
    expected = model.generate(source, **settings)
    encoded = model.encoder(source)
    found = model.generate(encoder_outputs=encoded, **settings)
    assert found.tolist() == expected.tolist()


def test_a_processor_that_appears_from_nowhere_is_an_error():
    with pytest.raises(NotImplementedError, match="does not know TemperatureLogitsWarper"):
        search(
            seq2seq(),
            tokens(2, 1),
            logits_processor=LogitsProcessorList([TemperatureLogitsWarper(0.5)]),
            stopping_criteria=StoppingCriteriaList(),
            generation_config=GenerationConfig(num_beams=2),
        )


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("way", ["is_fsdp_managed_module", "is_deepspeed_zero3_enabled"])
def test_processes_step_together_if_they_share_a_network(way, processes, monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: processes)
    assert not beam_generate.is_sharded(torch.nn.Linear(1, 1))
    monkeypatch.setattr(beam_generate, way, lambda *of: True)
    assert beam_generate.is_sharded(torch.nn.Linear(1, 1)) == (processes == 2)
