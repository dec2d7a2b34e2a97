import itertools

import pytest
import torch
from transformers import GenerationMixin

from talkconv.models.beam_search import top_of_rows
from tests.models.cases import language_model, seq2seq, tokens


def both(model, *inputs, monkeypatch, **settings):
    """What our search finds, and what the loop of transformers finds."""
    ours = model.generate(*inputs, **settings)
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_beam_search", GenerationMixin._beam_search)
        theirs = model.generate(*inputs, **settings)
    return ours, theirs


@pytest.mark.parametrize("early_stopping", [False, True, "never"])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0, -1.0])
@pytest.mark.parametrize("returned", [1, 4])
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


def test_the_prompt_is_read_once_a_sentence(monkeypatch):
    model = language_model()
    rows = []
    forward = model.decoder.forward
    monkeypatch.setattr(
        model.decoder, "forward", lambda x, **kw: rows.append(x.shape) or forward(x, **kw)
    )
    model.generate(tokens(2, 6), num_beams=3, max_new_tokens=3, eos_token_id=None)
    assert rows == [(2, 6), (6, 1), (6, 1)]


@pytest.mark.parametrize(
    ("rows", "V", "k"), [(3, 10_000, 10), (2, 1003, 7), (4, 50, 20), (1, 9, 9)]
)
def test_top_of_rows_is_topk(rows, V, k):
    x = torch.randn(rows, V)
    values, index = top_of_rows(x, k)
    assert torch.equal(values, x.topk(k).values)
    assert torch.equal(index, x.topk(k).indices)
