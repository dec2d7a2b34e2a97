import numpy as np
import pytest
import torch

from talkconv.runs.open_run import open_run
from talkconv.search.network import Forbidden
from talkconv.serving import exported_network
from talkconv.serving.export_card import ExportCard
from talkconv.serving.exported_network import ExportedNetwork, log_softmax

ATOL = 2e-5


@pytest.fixture(scope="module")
def pair(translation):
    return _pair(translation)


@pytest.fixture(scope="module")
def language_pair(language_model):
    return _pair(language_model)


def _pair(exported):
    """Return the network in PyTorch and the exported one."""
    network = open_run(exported.run, device="cpu").model
    card = ExportCard.read(exported.folder)
    return network, ExportedNetwork(exported.folder / "float32", card.network, threads=1)


def some_tokens(B, T, seed=0, words=20):
    return np.random.default_rng(seed).integers(4, words, (B, T))


@torch.inference_mode()
def logits_of(network, **inputs):
    tensors = {name: torch.from_numpy(value) for name, value in inputs.items()}
    return network(**tensors).logits.numpy()


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (1, 1, 5, 1), (3, 9, 4, 2), (2, 1, 2, 5)])
def test_every_shape_gives_the_logits_of_the_network(pair, sizes):
    network, exported = pair
    B, S, T, n = sizes
    source, mask = some_tokens(B, S), np.ones((B, S), dtype=np.int64)
    mask[0, 1:] = 0
    written = some_tokens(B * n, T, seed=1)
    first = np.full((B, 1), 2)
    step = exported.begin(B, exported.encode(source, mask))
    step.logits(first, 1)
    found = step.logits(written, T, parents=np.arange(B).repeat(n))
    inputs = dict(input_ids=source, attention_mask=mask)
    decoder = np.concatenate((first.repeat(n, axis=0), written), axis=1)
    expected = logits_of(network, **inputs, decoder_input_ids=decoder)[:, 1:]
    assert np.abs(found - expected).max() < ATOL


def test_the_best_words_are_those_of_the_logits(pair):
    _, exported = pair
    source = some_tokens(2, 6)
    encoded = exported.encode(source, np.ones_like(source))
    prompt = np.full((2, 1), 2)
    log_probs = exported.begin(2, encoded).log_probs(prompt, None)
    assert np.abs(np.exp(log_probs).sum(axis=1) - 1).max() < 1e-5
    scores, words = exported.begin(2, encoded).best(prompt, None, None, 4)
    expected = np.argsort(-log_probs, axis=1)[:, :4]
    assert words.tolist() == expected.tolist()
    assert np.allclose(scores, np.take_along_axis(log_probs, expected, axis=1), atol=1e-6)


def test_a_forbidden_word_has_no_probability_and_the_others_keep_theirs(pair):
    _, exported = pair
    source = some_tokens(2, 6)
    encoded = exported.encode(source, np.ones_like(source))
    prompt = np.full((2, 1), 2)
    scores, words = exported.begin(2, encoded).best(prompt, None, None, 4)
    forbidden = Forbidden(np.array([0, 0, 1]), np.array([words[0, 0], words[0, 2], words[1, 1]]))
    new_scores, new_words = exported.begin(2, encoded).best(prompt, None, forbidden, 2)
    assert new_words.tolist() == [words[0, [1, 3]].tolist(), words[1, [0, 2]].tolist()]
    assert np.array_equal(new_scores[0], scores[0, [1, 3]])
    V = exported.config.vocab_size
    every, _ = exported.begin(2, encoded).best(prompt, None, forbidden, V)
    assert np.isneginf(every).sum(axis=1).tolist() == [2, 1]


def test_a_long_prompt_is_read_in_pieces(language_pair, monkeypatch):
    network, exported = language_pair
    prompt = some_tokens(2, 23, words=8)
    mask = np.ones_like(prompt)
    mask[1, :9] = 0
    expected = logits_of(network, input_ids=prompt, attention_mask=mask)
    monkeypatch.setattr(exported_network, "MOST_TOKENS", 5)
    for kept in (1, 3, 7, 14):
        found = exported.begin(2, mask=mask).logits(prompt, kept)
        assert found.shape[:2] == (2, kept)
        assert np.abs(found - expected[:, -kept:]).max() < ATOL
    step = exported.begin(2, mask=mask)
    _, words = step.best(prompt, None, None, 2)
    best = np.argsort(-log_softmax(expected[:, -1]), axis=1)[:, :2]
    assert words.tolist() == best.tolist()
    # the next token of each beam stands behind the tokens that are no padding
    then = np.concatenate((prompt[[0, 0, 1, 1]], words.reshape(-1, 1)), axis=1)
    both = np.concatenate((mask[[0, 0, 1, 1]], np.ones((4, 1), dtype=np.int64)), axis=1)
    expected = logits_of(network, input_ids=then, attention_mask=both)[:, -1:]
    found = step.logits(words.reshape(-1, 1), 1, parents=np.array([0, 0, 1, 1]))
    assert np.abs(found - expected).max() < ATOL


def test_the_state_of_a_step_has_a_constant_size(language_pair):
    _, exported = language_pair
    step = exported.begin(1)
    sizes = set()
    for token in some_tokens(1, 12, words=8)[0]:
        step.best(np.array([[token]]), None, None, 1)
        sizes.add(tuple(step.states[0].shape()))
    assert sizes == {(1, 2, 4, 8)}


def test_it_tells_how_far_each_token_looked(pair):
    from talkconv.report.windows import windows_of

    network, exported = pair
    source, target = [5, 9, 7, 2], [8, 6, 5, 2]
    encoder, decoder = windows_of(network, source, target)
    encoded = exported.encode(np.array([source]), np.ones((1, 4), dtype=np.int64))
    read = np.array([[2, *target[:-1]]])
    for layers, reach in (
        (encoder, encoded.reach),
        (decoder, exported.begin(1, encoded).reach(read)),
    ):
        for layer, found in zip(layers, reach, strict=True):
            assert np.allclose(found[0, 0].T, layer["left"], atol=0.006)
            assert np.allclose(found[1, 0].T, layer["right"], atol=0.006)


def test_a_broken_graph_is_told(translation, tmp_path):
    card = ExportCard.read(translation.folder)
    for name in ("encoder.onnx", "decoder.onnx"):
        (tmp_path / name).write_bytes(b"not a graph")
    with pytest.raises(ValueError, match=r"encoder\.onnx must be a graph that onnxruntime can run"):
        ExportedNetwork(tmp_path, card.network)
