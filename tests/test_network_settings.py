"""Tests the settings of networks. Impossible ones are tested with TaLKConvConfig."""

from dataclasses import fields

import pytest

from talkconv.layers.blocks import ACTIVATIONS as FUNCTIONS
from talkconv.layers.make_mixer import make_mixer
from talkconv.models import TaLKConvConfig
from talkconv.network_presets import PRESETS, preset_settings
from talkconv.network_settings import ACTIVATIONS, MIXERS, NetworkSettings


def test_a_configuration_has_the_same_settings_and_defaults():
    settings, config = NetworkSettings(), TaLKConvConfig()
    for field in fields(NetworkSettings):
        assert getattr(config, field.name) == getattr(settings, field.name), field.name


def test_every_name_has_its_layer():
    assert sorted(FUNCTIONS) == sorted(ACTIVATIONS)
    for mixer in MIXERS:
        make_mixer(mixer, 8, 2, l_max=3, r_max=3)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_networks(name):
    assert NetworkSettings(**preset_settings(name)).num_layers >= 6


def test_what_is_left_out_is_filled_in():
    settings = NetworkSettings(encoder_l_max=(1, 3), heads=4, share_embeddings=True)
    assert settings.encoder_r_max == [1, 3]
    assert settings.attention_heads == 4
    assert settings.tie_word_embeddings
    assert settings.source_vocab_size == 10_000


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="heads must divide dim=10, got 4"):
        NetworkSettings(dim=10, heads=4)
