import xml.etree.ElementTree as ElementTree

import pytest

from talkconv.report import curves
from talkconv.report.curves import Curve, draw_curves
from talkconv.report.kept_run import KeptRun
from tests.report.cases import kept


def panels(path):
    root = ElementTree.parse(path).getroot()
    return [each.get("id") for each in root.iter() if (each.get("id") or "").startswith("axes_")]


def test_there_are_two_panels_once_all_speeds_are_known(tmp_path):
    fast, slow = kept("a"), kept("b", 30.0)
    assert draw_curves([Curve("A", [fast]), Curve("B", [slow])], tmp_path / "both")
    assert panels(tmp_path / "both.svg") == ["axes_1", "axes_2"]
    unmeasured = kept("b", 30.0, speed={})
    assert draw_curves([Curve("A", [fast]), Curve("B", [unmeasured])], tmp_path / "one")
    assert panels(tmp_path / "one.svg") == ["axes_1"]
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_rows_without_a_run_are_left_out(tmp_path):
    assert draw_curves([Curve("A", [kept()]), Curve("B", [KeptRun("b")])], tmp_path / "p")
    assert not draw_curves([Curve("B", [KeptRun("b")])], tmp_path / "nothing")
    assert not (tmp_path / "nothing.svg").exists()


@pytest.mark.parametrize("label", ["short", "a label that would cover the curves below it " * 3])
def test_the_legend_covers_no_axis(label, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(curves, "save", lambda figure, path: drawn.append(figure))
    draw_curves([Curve(label, [kept()]), Curve("B", [kept("b", 30.0)])], tmp_path / "p")
    (figure,) = drawn
    figure.draw_without_rendering()
    panel = figure.axes[-1]
    legend = figure.legends[0] if figure.legends else panel.get_legend()
    place = legend.get_window_extent()
    assert place.x0 > panel.bbox.x0
    assert place.x1 <= figure.bbox.x1
    assert bool(figure.legends) == (place.x0 > panel.bbox.x1) == (label != "short")


def test_the_same_numbers_give_the_same_file(tmp_path):
    run = kept(recipe={"training": {"validate_by": "loss"}})
    for name in ("first", "second"):
        draw_curves([Curve("A", [run])], tmp_path / name)
    for end in (".svg", ".png"):
        first, second = ((tmp_path / f"{name}{end}").read_bytes() for name in ("first", "second"))
        assert first == second
