import math

import pytest
import torch

from talkconv.evaluation.perplexity import perplexity, streamed_perplexity
from talkconv.evaluation.stream_blocks import words_of_lines
from tests.evaluation.cases import language_model

ADAPTIVE = dict(adaptive_cutoffs=[8, 16], adaptive_factor=2)
MODELS = {"ordinary": {}, "adaptive": ADAPTIVE, "attention": dict(decoder_mixer="attention")}


@pytest.fixture(params=MODELS)
def model(request):
    return language_model(**MODELS[request.param])


def stream(count, seed=0):
    return torch.randint(2, 29, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def naive(model, tokens, block, context):
    """Compute the loss token by token, each in a separate call."""
    whole = [2, *tokens]
    scored, total = block - context, 0.0
    for at in range(len(tokens)):
        begin = at - at % scored
        seen = whole[max(0, begin - context) : at + 1]
        log_probs = model(torch.tensor([seen])).logits[0, -1].double().log_softmax(dim=-1)
        total -= log_probs[tokens[at]].item()
    return total


@pytest.mark.parametrize(("block", "context"), [(8, 0), (8, 3), (8, 7), (5, 2), (64, 10), (1, 0)])
def test_is_the_naive_computation(model, block, context):
    tokens = stream(23)
    found = perplexity(model, tokens, block=block, context=context, batch_tokens=20)
    assert found.nats == pytest.approx(naive(model, tokens, block, context), abs=1e-3)
    assert found.tokens == 23


@pytest.mark.parametrize("batch_tokens", [1, 16, 1000])
def test_batches_change_nothing(model, batch_tokens):
    usual, other = (
        perplexity(model, stream(50), block=8, context=4, batch_tokens=size).nats
        for size in (32, batch_tokens)
    )
    assert other == pytest.approx(usual, abs=1e-3)


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_a_stream_is_one_long_block(model, chunk):
    tokens = stream(40)
    found = streamed_perplexity(model, tokens, chunk=chunk)
    assert found.nats == pytest.approx(naive(model, tokens, 41, 0), abs=1e-3)


def test_per_token_and_per_word():
    tokens = stream(12)
    found = perplexity(language_model(), tokens, block=8, context=4, words=6)
    assert found.per_token == pytest.approx(math.exp(found.nats / 12))
    assert found.per_word == pytest.approx(found.per_token**2)
    assert perplexity(language_model(), tokens).per_word is None


def test_a_network_that_knows_nothing_is_as_perplexed_as_its_vocabulary_is_large():
    model = language_model(tie_word_embeddings=False)
    torch.nn.init.zeros_(model.lm_head.weight)
    assert perplexity(model, stream(30), block=8, context=4).per_token == pytest.approx(29)


def test_lines_end_with_a_word():
    assert words_of_lines(["a b c", "", "d"]) == 7


@pytest.mark.parametrize(("block", "context"), [(8, 8), (8, -1)])
def test_something_must_be_scored(block, context):
    with pytest.raises(ValueError, match="context must be from 0 to below block=8"):
        perplexity(language_model(), stream(5), block=block, context=context)


def test_nothing_has_no_perplexity():
    with pytest.raises(ValueError, match="at least one token"):
        perplexity(language_model(), [])
