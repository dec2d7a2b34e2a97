import pytest
import torch

from talkconv.models import TaLKConvForCausalLM, TaLKConvForConditionalGeneration, preset
from talkconv.network_presets import PRESETS


def parameters(name):
    config = preset(name)
    seq2seq = config.is_encoder_decoder
    network = TaLKConvForConditionalGeneration if seq2seq else TaLKConvForCausalLM
    with torch.device("meta"):
        return network(config).num_parameters()


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("wmt16_en_de", 209),
        ("iwslt14_de_en", 42),
        ("cnn_dailymail_standard", 59),
        ("cnn_dailymail_deep", 83),
    ],
)
def test_has_as_many_parameters_as_the_paper_says(name, millions):
    assert parameters(name) // 10**6 == millions


def test_the_language_model_has_as_many_within_a_hundredth():
    assert parameters("wikitext103") == pytest.approx(240e6, rel=0.01)


@pytest.mark.parametrize("name", PRESETS)
def test_layers_are_those_of_the_paper(name):
    layers = {"wikitext103": (0, 17), "cnn_dailymail_deep": (10, 10)}
    config = preset(name)
    assert (len(config.encoder_l_max), config.num_layers) == layers.get(name, (7, 6))
    assert config.encoder_r_max == config.encoder_l_max


def test_takes_changes_of_your_own():
    config = preset("iwslt14_de_en", vocab_size=77, encoder_mixer="attention")
    assert (config.vocab_size, config.encoder_mixer, config.dim) == (77, "attention", 512)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'wmt16_en_de'"):
        preset("wmt16-ende")
