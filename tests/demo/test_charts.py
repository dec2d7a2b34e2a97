import itertools
import re
import xml.etree.ElementTree as ET

import pytest

from talkconv.demo import charts
from talkconv.demo.charts import HEIGHT, WIDTH, Axis, Line, chart, nice_ticks, powers_of_ten


def drawn(points, *more, log=False):
    x = Axis("n", 1, 100, [1, 10, 100], log=log)
    y = Axis("ms", 0, 10, [0, 5, 10])
    lines = [Line("a & b", "talk", points), *(Line("other", "attention", one) for one in more)]
    return ET.fromstring(chart(x, y, lines, "a < b"))


def circles(svg):
    return [(float(one.get("cx")), float(one.get("cy"))) for one in svg.iter("circle")]


def test_it_is_well_formed_and_says_what_it_shows():
    svg = drawn([(1, 0), (100, 10)])
    assert svg.get("aria-label") == "a < b"
    assert [one.text for one in svg.iter("title")] == ["a & b: 0 at 1", "a & b: 10 at 100"]


def test_corners_lie_where_the_axes_begin_and_end():
    (left, bottom), (right, top) = circles(drawn([(1, 0), (100, 10)]))
    assert left == charts.LEFT
    assert bottom == HEIGHT - charts.BOTTOM
    assert right == WIDTH - 14
    assert top == charts.TOP


@pytest.mark.parametrize(("log", "part"), [(False, 9 / 99), (True, 0.5)])
def test_ten_lies_where_its_axis_says(log, part):
    (left, _), (middle, _), (right, _) = circles(drawn([(1, 0), (10, 0), (100, 0)], log=log))
    assert (middle - left) / (right - left) == pytest.approx(part, abs=1e-3)


def test_names_of_lines_that_end_together_do_not_overlap():
    svg = drawn([(1, 5), (100, 5)], [(1, 4), (100, 5)], [(1, 4), (100, 5.1)])
    rows = sorted(float(one.get("y")) for one in svg.iter("text") if "name" in one.get("class"))
    assert len(rows) == 3
    assert min(b - a for a, b in itertools.pairwise(rows)) >= 17


def test_many_points_are_a_line_without_dots():
    svg = drawn([(1 + step, 1) for step in range(60)])
    assert circles(svg) == []
    path = next(one for one in svg.iter("path") if one.get("class") is None)
    assert len(re.findall("L", path.get("d"))) == 59


@pytest.mark.parametrize(("low", "high"), [(0, 7.3), (0, 900), (0, 0.02)])
def test_ticks_cover_the_range(low, high):
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 3 <= len(ticks) <= 8


def test_powers_of_ten_cover_the_range():
    assert powers_of_ten(0.02, 1.5) == pytest.approx([0.01, 0.1, 1, 10])
