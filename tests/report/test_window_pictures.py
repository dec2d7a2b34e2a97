import xml.etree.ElementTree as ElementTree

import pytest

from talkconv.report.window_pictures import draw_reach, draw_sentence, draw_talk
from talkconv.report.window_statistics import measure_windows
from tests.report.cases import SENTENCES


@pytest.fixture(scope="module")
def statistics(workplace):
    return measure_windows(workplace / "runs" / "tiny-talk", SENTENCES, most=3)


def axes(path):
    root = ElementTree.parse(path).getroot()
    return [each for each in root.iter() if (each.get("id") or "").startswith("axes_")]


def lines_of(panel):
    return [each for each in panel.iter() if (each.get("id") or "").startswith("line2d_")]


def test_the_reach_of_encoder_and_decoder(statistics, tmp_path):
    draw_reach(statistics, tmp_path / "reach")
    assert len(axes(tmp_path / "reach.svg")) == 2
    draw_reach({**statistics, "encoder": []}, tmp_path / "language_model")
    assert len(axes(tmp_path / "language_model.svg")) == 1


def test_a_sentence_has_a_panel_for_each_layer_and_a_line_for_each_window(statistics, tmp_path):
    look = statistics["looks"][0]
    draw_sentence(look, tmp_path / "sentence")
    # two layers of the encoder, one of the decoder, and an empty place below the second layer
    assert len(axes(tmp_path / "sentence.svg")) == 4
    draw_talk(look, tmp_path / "talk")
    panels = axes(tmp_path / "talk.svg")
    assert len(panels) == 2
    tokens, heads = len(look["encoder"]["tokens"]), 2
    # the tokens themselves are one more line, and each axis has two ticks a token
    assert len(lines_of(panels[0])) >= tokens * heads + 1
    assert (tmp_path / "talk.png").stat().st_size > 1000
