import pytest

from talkconv.layers import DynamicConv, LightConv, SelfAttention, TaLKConv, make_mixer


@pytest.mark.parametrize(
    ("kind", "layer"),
    [
        ("talk", TaLKConv),
        ("attention", SelfAttention),
        ("light", LightConv),
        ("dynamic", DynamicConv),
    ],
)
def test_names(kind, layer):
    two_sided, causal = make_mixer(kind, 8, 2, 3, 3), make_mixer(kind, 8, 2, 3, 0)
    assert type(two_sided) is type(causal) is layer
    assert not two_sided.causal
    assert causal.causal


def test_kernels_are_as_wide_as_windows():
    assert make_mixer("light", 8, 2, 3, 3).kernel_size == 7
    assert make_mixer("dynamic", 8, 2, 3, 0).kernel_size == 4


def test_each_takes_its_own_dropout():
    dropouts = dict(offset_dropout=0.1, weight_dropout=0.2, attention_dropout=0.3)
    assert make_mixer("talk", 8, 2, 3, 3, **dropouts).offset_dropout.p == 0.1
    assert make_mixer("light", 8, 2, 3, 3, **dropouts).weight_dropout.p == 0.2
    assert make_mixer("dynamic", 8, 2, 3, 3, **dropouts).weight_dropout.p == 0.2
    assert make_mixer("attention", 8, 2, 3, 3, **dropouts).attention_dropout == 0.3


def test_bad_settings():
    with pytest.raises(ValueError, match="one of talk, attention, light, dynamic; got 'tlak'"):
        make_mixer("tlak", 8, 2, 3, 3)
    with pytest.raises(ValueError, match="got l_max=3, r_max=1"):
        make_mixer("light", 8, 2, 3, 1)
