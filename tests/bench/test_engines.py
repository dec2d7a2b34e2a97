import pytest
import torch

from talkconv.bench import engines
from talkconv.bench.generation_part import greedy_gap, ids_of
from talkconv.models import TaLKConvConfig, TaLKConvForConditionalGeneration

WORDS = 50


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    config = TaLKConvConfig(
        vocab_size=WORDS, dim=32, ff_dim=32, heads=4, encoder_l_max=[3], decoder_l_max=[3, 7]
    )
    return TaLKConvForConditionalGeneration(config).eval()


@pytest.fixture(scope="module")
def model(network):
    return engines.random_model(network, 5)


@pytest.fixture(scope="module")
def texts():
    return engines.random_texts(3, 7, WORDS)


def test_a_greedy_translation_has_the_best_words(network, model, texts):
    found = engines.engine_of(model)(texts, 1)
    assert [len(each.split()) for each in found] == [5, 5, 5]
    assert greedy_gap(network, ids_of(texts), ids_of(found)) < 1e-3


def test_another_word_is_found(network, model, texts):
    words = ids_of(engines.engine_of(model)(texts, 1))
    words[1, 3] = (words[1, 3] + 1) % WORDS
    assert greedy_gap(network, ids_of(texts), words) > 1e-3


@pytest.mark.slow
def test_exports_translate_as_the_network_does(model, texts, tmp_path):
    found = engines.exported_engines(model, tmp_path)
    assert found[engines.ONNX](texts, 2) == engines.engine_of(model)(texts, 2)
    assert [len(each.split()) for each in found[engines.ONNX_INT8](texts, 2)] == [5, 5, 5]


def test_a_transformer_of_the_same_size_writes_as_many_words(model, texts, tmp_path):
    pytest.importorskip("ctranslate2")
    found, marian = engines.transformer_engines(model, lambda texts: 4, tmp_path)
    assert (marian.config.d_model, marian.config.vocab_size) == (32, WORDS)
    assert set(found) == {engines.MARIAN, *engines.CTRANSLATE2}
    for translate in found.values():
        assert [len(each.split()) for each in translate(texts, 1)] == [4, 4, 4]
