import itertools
import re

import pytest

from talkconv.bench.page.pictures import Picture, save, spread

LINES = {"TaLK": [(10, 100.0), (100, 10.0)], "LSTM": [(10, 5.0), (100, 0.5), (1000, 0.05)]}


def picture(lines=None):
    return Picture("speed", "Speed", "n", "a second", LINES if lines is None else lines, "TaLK")


def test_a_picture_is_written_twice_alike_in_both_formats(tmp_path):
    found = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        save(picture(), folder)
        found.append([(folder / f"speed.{kind}").read_bytes() for kind in ("svg", "png")])
    assert found[0] == found[1]
    assert found[0][0].startswith(b"<?xml")
    assert found[0][1].startswith(b"\x89PNG")


def texts_of(lines, folder):
    """Return the labels of a picture's ticks. matplotlib writes each text as a comment, too."""
    save(picture(lines), folder)
    return re.findall(r"<!-- (.*?) -->", (folder / "speed.svg").read_text())


def test_an_axis_over_many_powers_of_ten_shows_these_alone(tmp_path):
    texts = texts_of({"TaLK": [(10, 100.0), (3000, 0.1)]}, tmp_path)
    assert any("10^{3}" in text for text in texts)
    assert "3 000" not in texts


def test_a_short_axis_shows_what_was_measured_and_round_values(tmp_path):
    texts = texts_of({"TaLK": [(32, 1600.0), (512, 1500.0)]}, tmp_path)
    assert {"32", "512", "1 000", "2 000"} <= set(texts)


def test_nine_other_lines_have_styles_of_their_own(tmp_path):
    lines = {"TaLK": LINES["TaLK"]} | {f"other {k}": LINES["LSTM"] for k in range(9)}
    save(picture(lines), tmp_path)
    from talkconv.bench.page.pictures import _OTHERS

    assert len({(str(style["linestyle"]), style["marker"]) for style in _OTHERS}) == 9


def test_a_picture_without_lines_is_empty():
    assert not picture().is_empty
    assert picture({"TaLK": [(10, 1.0)]}).is_empty
    assert picture({}).is_empty


@pytest.mark.parametrize("heights", [[0.5, 0.5, 0.5], [0.0, 0.01, 0.9], [1.0, 0.99, 0.98], [0.2]])
def test_labels_do_not_lie_on_each_other(heights):
    names = {str(k): height for k, height in enumerate(heights)}
    placed = sorted(spread(names, gap=0.1).values())
    assert all(b - a >= 0.1 - 1e-5 for a, b in itertools.pairwise(placed))
    assert all(-1e-6 <= place <= 1 + 1e-6 for place in placed)
