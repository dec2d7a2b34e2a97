import torch

from talkconv.layers.dropout import Dropout


def test_it_follows_the_mode_of_the_network():
    layer = Dropout(0.5)
    x = torch.ones(1_000)
    assert set(layer(x).unique().tolist()) == {0.0, 2.0}
    assert layer.eval()(x) is x


def test_it_takes_the_place_of_torchs_layer():
    assert isinstance(Dropout(0.1), torch.nn.Dropout)
    assert repr(Dropout(0.1)) == "Dropout(p=0.1, inplace=False)"
