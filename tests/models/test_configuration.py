import pytest

from talkconv.models.configuration import TaLKConvConfig


def test_lists_say_how_many_layers_there_are():
    config = TaLKConvConfig(encoder_l_max=[1, 2, 3], decoder_l_max=[4, 5])
    assert (config.is_encoder_decoder, config.num_layers) == (True, 2)
    assert config.encoder_r_max == [1, 2, 3]
    assert config.num_hidden_layers == 2
    assert config.hidden_size == config.dim


def test_no_encoder_layers_is_a_language_model():
    assert not TaLKConvConfig(encoder_l_max=[]).is_encoder_decoder


def test_survives_a_file(tmp_path):
    config = TaLKConvConfig(
        encoder_l_max=(1, 3),
        encoder_r_max=(2, 4),
        decoder_l_max=(5,),
        encoder_mixer=["talk", "light"],
    )
    config.save_pretrained(tmp_path)
    read = TaLKConvConfig.from_pretrained(tmp_path)
    ours = [name for name in config.to_dict() if name != "transformers_version"]
    assert [getattr(read, name) for name in ours] == [getattr(config, name) for name in ours]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(heads=3), "heads must divide dim=512, got 3"),
        (dict(attention_heads=5), "attention_heads must divide"),
        (dict(encoder_r_max=[1]), "got 7 and 1 entries"),
        (
            dict(encoder_l_max=[], decoder_l_max=[]),
            "encoder_l_max or decoder_l_max must have one entry a layer",
        ),
        (dict(decoder_l_max=[3, -1]), "at least 0 everywhere"),
        (dict(encoder_mixer=["talk"]), "each of the 7 layers, got 1"),
        (dict(decoder_mixer="tlk"), "got 'tlk'"),
        (dict(activation="gelu"), "got 'gelu'"),
        (dict(dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
        (dict(vocab_size=0), "vocab_size must be at least 1, got 0"),
        (dict(share_embeddings=True, encoder_vocab_size=9), "one vocabulary for both sides"),
        (dict(encoder_l_max=[], adaptive_cutoffs=[9, 3]), "must rise"),
        (dict(encoder_l_max=[], adaptive_cutoffs=[10_000]), "below vocab_size=10000"),
        (dict(adaptive_cutoffs=[10]), "for language models"),
        (
            dict(encoder_l_max=[], adaptive_cutoffs=[10], label_smoothing=0.1),
            "not defined for an adaptive softmax",
        ),
        (dict(encoder_lmax=[3]), "did you mean 'encoder_l_max'"),
    ],
)
def test_settings_that_make_no_network_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        TaLKConvConfig(**settings)
