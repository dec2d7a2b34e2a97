import pytest
import torch
from torch import nn

from talkconv.layers import AdaptiveInput, AdaptiveSoftmax
from tests.layers.cases import assert_same, random_parameters

SIZES = dict(vocab_size=50, dim=16, cutoffs=[10, 30], factor=4)


def random_softmax():
    return random_parameters(AdaptiveSoftmax(**SIZES))


def hidden(*shape):
    return torch.randn(*shape, 16, generator=torch.Generator().manual_seed(1))


def test_shapes_of_the_bands():
    with torch.device("meta"):
        embedding = AdaptiveInput(267_744, 1024, cutoffs=[20_000, 60_000])
    shapes = [tuple(band.weight.shape) for band in embedding.embeddings]
    assert shapes == [(20_000, 1024), (40_000, 256), (207_744, 64)]
    assert [tuple(p.weight.shape) for p in embedding.projections] == [
        (1024, 1024),
        (1024, 256),
        (1024, 64),
    ]


def test_input_projects_each_word_from_its_band():
    embedding = random_parameters(AdaptiveInput(**SIZES))
    tokens = torch.tensor([[0, 9, 10], [29, 30, 49]])
    out = embedding(tokens)
    assert out.shape == (2, 3, 16)
    for token, vector in zip(tokens.flatten().tolist(), out.flatten(0, 1), strict=True):
        band, row = (0, token) if token < 10 else (1, token - 10) if token < 30 else (2, token - 30)
        expected = embedding.projections[band](embedding.embeddings[band].weight[row])
        assert_same(vector, expected)


def test_padding_starts_at_zero_and_stays():
    embedding = AdaptiveInput(**SIZES, padding_idx=1)
    embedding(torch.tensor([1, 2, 11])).sum().backward()
    assert embedding.embeddings[0].weight[1].abs().max() == 0
    assert embedding.embeddings[0].weight.grad[1].abs().max() == 0
    assert embedding.embeddings[0].weight.grad[2].abs().max() > 0
    assert embedding.embeddings[1].weight.grad[1].abs().max() > 0


def test_padding_may_be_the_first_word():
    assert AdaptiveInput(**SIZES, padding_idx=0).embeddings[0].weight[0].abs().max() == 0


def test_words_of_all_bands_start_with_length_1():
    """So it is with and without an input to share the words with."""
    sizes = dict(vocab_size=3_000, dim=64, cutoffs=[1_000, 2_000])
    embedding, softmax = AdaptiveInput(**sizes), AdaptiveSoftmax(**sizes)
    for words in (*(band.weight for band in embedding.embeddings), *softmax.words):
        assert abs(words.square().sum(dim=1).mean() - 1) < 0.1
    for projection in softmax.projections:
        bound = (6 / sum(projection.shape)) ** 0.5
        assert 0.9 * bound < projection.abs().max() <= bound


def test_softmax_equals_torch():
    softmax = random_softmax()
    module = nn.AdaptiveLogSoftmaxWithLoss(16, 50, cutoffs=[10, 30], div_value=4)
    module.head.weight.data = torch.cat((softmax.words[0], softmax.clusters.weight))
    for tail, (narrow, words) in enumerate(module.tail):
        narrow.weight.data = softmax.projections[tail].T
        words.weight.data = softmax.words[tail + 1]
    assert_same(softmax.log_prob(hidden(7)), module.log_prob(hidden(7)), 4e-6)


def test_softmax_equals_the_authors(authors):
    state, io = authors("lm_adaptive.pt")["model"], authors("lm_adaptive.io.pt")
    embedding = AdaptiveInput(120, 32, cutoffs=[40, 80])
    names = "decoder.embed_tokens.embeddings"
    for band in range(3):
        embedding.embeddings[band].weight.data = state[f"{names}.{band}.0.weight"]
        embedding.projections[band].weight.data = state[f"{names}.{band}.1.weight"]
    softmax = AdaptiveSoftmax(120, 32, cutoffs=[40, 80]).tie(embedding)
    softmax.clusters.weight.data = state["decoder.adaptive_softmax.head.class_proj.weight"]
    assert_same(softmax.log_prob(io["hidden"]), io["log_probs"], 1e-5)


def test_probabilities_add_up_to_one():
    total = random_softmax().log_prob(hidden(3, 4)).exp().sum(dim=-1)
    torch.testing.assert_close(total, torch.ones(3, 4))


@pytest.mark.parametrize("ignore_index", [-100, 3, 40])
def test_loss_is_the_log_probability_of_the_target(ignore_index):
    softmax = random_softmax()
    states = hidden(4, 13)
    targets = torch.randint(50, (4, 13), generator=torch.Generator().manual_seed(2))
    targets[0, :3] = ignore_index
    counted = targets != ignore_index
    log_prob = softmax.log_prob(states)
    expected = -log_prob.gather(-1, targets.clamp(min=0)[..., None])[..., 0] * counted
    losses = softmax.loss(states, targets, ignore_index=ignore_index, reduction="none")
    assert_same(losses, expected, 4e-6)
    total = softmax.loss(states, targets, ignore_index=ignore_index, reduction="sum")
    torch.testing.assert_close(total, expected.sum())
    mean = softmax.loss(states, targets, ignore_index=ignore_index)
    torch.testing.assert_close(mean, expected.sum() / counted.sum())


def test_loss_of_one_band_alone():
    """Bands without targets have gradients of zero, and not NaN."""
    softmax = random_softmax()
    softmax.loss(hidden(5), torch.tensor([1, 2, 3, 4, 5])).backward()
    assert softmax.words[0].grad.abs().max() > 0
    assert softmax.words[2].grad is None or softmax.words[2].grad.abs().max() == 0


def test_loss_has_the_gradients_of_the_dense_one():
    softmax = random_softmax().double()
    targets = torch.tensor([1, 12, 49, 30, 9, 10])
    states = hidden(6).double().requires_grad_()
    sources = [states, *softmax.parameters()]
    sparse = torch.autograd.grad(softmax.loss(states, targets), sources)
    dense = nn.functional.nll_loss(softmax.log_prob(states), targets)
    for actual, expected in zip(sparse, torch.autograd.grad(dense, sources), strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("projections", [True, False])
def test_tied_parameters_are_the_same_ones(projections):
    embedding, softmax = AdaptiveInput(**SIZES), AdaptiveSoftmax(**SIZES)
    softmax.tie(embedding, projections=projections)
    for words, band in zip(softmax.words, embedding.embeddings, strict=True):
        assert words is band.weight
    for ours, theirs in zip(softmax.projections, list(embedding.projections)[1:], strict=True):
        assert (ours is theirs.weight) == projections
    own = set(softmax.parameters()) - set(embedding.parameters())
    assert len(own) == (1 if projections else 3)


def test_dropout_is_on_the_rare_words_alone():
    softmax = AdaptiveSoftmax(**SIZES, dropout=0.5)
    one, other = softmax.log_prob(hidden(5)), softmax.log_prob(hidden(5))
    assert torch.equal(one[:, :10], other[:, :10])
    assert not torch.equal(one[:, 10:], other[:, 10:])


def test_input_and_log_prob_compile_without_a_break():
    embedding, softmax = AdaptiveInput(**SIZES), random_softmax()
    tokens = torch.tensor([[0, 12, 49]])
    compiled = torch.compile(embedding, backend="aot_eager", fullgraph=True)
    assert_same(compiled(tokens), embedding(tokens))
    compiled = torch.compile(softmax.log_prob, backend="aot_eager", fullgraph=True)
    assert_same(compiled(hidden(3)), softmax.log_prob(hidden(3)))
    loss = torch.compile(softmax.loss, backend="aot_eager")
    assert_same(loss(hidden(1, 3), tokens), softmax.loss(hidden(1, 3), tokens))


def test_bad_calls():
    for cutoffs in ([], [10, 10], [30, 10], [10, 50], [0, 10]):
        with pytest.raises(ValueError, match="cutoffs must increase between 0 and vocab_size = 50"):
            AdaptiveInput(50, 16, cutoffs=cutoffs)
    with pytest.raises(ValueError, match="every band must have at least one channel"):
        AdaptiveSoftmax(50, 8, cutoffs=[10, 30])
    with pytest.raises(ValueError, match=r"first band, 0 \.\. 9, got 10"):
        AdaptiveInput(**SIZES, padding_idx=10)
    with pytest.raises(ValueError, match="same \\(words, channels\\)"):
        AdaptiveSoftmax(**SIZES).tie(AdaptiveInput(50, 16, cutoffs=[10, 31]))
    with pytest.raises(ValueError, match=r"targets must have .* channels, \(2, 3\)"):
        random_softmax().loss(hidden(2, 3), torch.zeros(6, dtype=torch.int64))
    with pytest.raises(ValueError, match="got 'max'"):
        random_softmax().loss(hidden(1), torch.zeros(1, dtype=torch.int64), reduction="max")
    with pytest.raises(ValueError, match="got -1"):
        AdaptiveInput(**SIZES, padding_idx=-1)
    with pytest.raises(ValueError, match="factor=0"):
        AdaptiveInput(50, 16, cutoffs=[10, 30], factor=0)
