import numpy as np
import pytest
import torch

from talkconv.models.search_step import top_of_rows
from talkconv.search.network import Forbidden
from tests.models.cases import language_model, seq2seq, tokens


def log_probs(model, words):
    return model(words).logits[:, -1].log_softmax(dim=-1)


@torch.no_grad()
def test_a_step_returns_the_best_words_of_each_row():
    model, words = language_model(), tokens(2, 6)
    _, step = model.begin_search(words.numpy())
    values, best = step.best(words.numpy(), None, None, 5)
    expected = log_probs(model, words).topk(5)
    assert best.tolist() == expected.indices.tolist()
    assert np.allclose(values, expected.values, rtol=0, atol=1e-5)
    assert (values.dtype, best.dtype) == (np.float32, np.int64)


@torch.no_grad()
def test_a_row_goes_on_from_its_parent():
    model, words = language_model(), tokens(2, 6)
    _, step = model.begin_search(words.numpy())
    step.best(words.numpy(), None, None, 5)
    next_words, parents = torch.tensor([[7], [8], [9]]), torch.tensor([1, 0, 1])
    _, best = step.best(next_words.numpy(), parents.numpy(), None, 5)
    whole = torch.cat((words[parents], next_words), dim=1)
    assert best.tolist() == log_probs(model, whole).topk(5).indices.tolist()


@torch.no_grad()
def test_all_log_probabilities_of_rows_without_parents():
    model, words = language_model(), tokens(2, 6)
    _, step = model.begin_search(words.numpy())
    first = step.log_probs(words.numpy(), None)
    assert np.allclose(first, log_probs(model, words), rtol=0, atol=1e-5)
    next_words = torch.tensor([[7], [8]])
    whole = torch.cat((words, next_words), dim=1)
    then = step.log_probs(next_words.numpy(), None)
    assert np.allclose(then, log_probs(model, whole), rtol=0, atol=1e-5)


@torch.no_grad()
def test_the_padding_of_a_prompt_is_not_seen():
    model, words = language_model(), tokens(2, 6)
    words[1, :3] = 1
    mask = (words != 1).long().numpy()
    _, step = model.begin_search(words.numpy(), mask)
    found = step.log_probs(words.numpy(), None)
    assert np.allclose(found[1], log_probs(model, words[1:, 3:])[0], rtol=0, atol=1e-5)


@torch.no_grad()
def test_forbidden_words_do_not_come_and_leave_the_others_as_they_are():
    model, words = language_model(), tokens(2, 6)
    usual = model.begin_search(words.numpy())[1].best(words.numpy(), None, None, 29)
    rows, forbidden = np.array([1, 1, 0]), np.array([4, 5, 6])
    _, step = model.begin_search(words.numpy())
    values, best = step.best(words.numpy(), None, Forbidden(rows, forbidden), 29)
    for row, gone in enumerate([{6}, {4, 5}]):
        kept = [
            (value, word)
            for value, word in zip(usual[0][row], usual[1][row], strict=True)
            if word not in gone
        ]
        found = list(zip(values[row], best[row], strict=True))
        assert found[: len(kept)] == kept
        assert np.isneginf(values[row, len(kept) :]).all()


@torch.no_grad()
def test_a_translation_begins_with_its_first_token():
    model, source = seq2seq(), tokens(2, 6)
    source[1, 4:] = 1
    prompt, step = model.begin_search(source.numpy())
    assert prompt.tolist() == [[2], [2]]
    _, best = step.best(prompt, None, None, 4)
    logits = model(source, decoder_input_ids=torch.from_numpy(prompt)).logits[:, -1]
    assert best.tolist() == logits.topk(4).indices.tolist()


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
