import pytest
import torch

from talkconv.bench.generation_part import greedy_gap
from talkconv.bench.marian import random_sentences, translate_with
from talkconv.models import TaLKConvConfig, TaLKConvForConditionalGeneration


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    config = TaLKConvConfig(
        vocab_size=10_000, dim=32, ff_dim=32, heads=4, encoder_l_max=[3], decoder_l_max=[3, 7]
    )
    return TaLKConvForConditionalGeneration(config).eval()


def test_a_greedy_translation_has_the_best_words(network):
    source = random_sentences(3, 7)
    words = translate_with(network)(source, 1, 5)
    assert [len(each) for each in words] == [5, 5, 5]
    assert greedy_gap(network, source, torch.tensor(words)) < 1e-3


def test_another_word_is_found(network):
    source = random_sentences(3, 7)
    words = torch.tensor(translate_with(network)(source, 1, 5))
    words[1, 3] += 1
    assert greedy_gap(network, source, words) > 0.1
