from itertools import chain
from pathlib import Path

import pytest

from talkconv.data.stages import _chunked, _grouped


def test_chunks_are_of_so_many_rows_or_characters(monkeypatch):
    monkeypatch.setattr("talkconv.data.stages._ROWS", 3)
    monkeypatch.setattr("talkconv.data.stages._CHARACTERS", 10)
    rows = [("a", "b")] * 4 + [("x" * 5, "y" * 5)] * 2 + [("c", "d")]
    assert [len(chunk) for chunk in _chunked(rows)] == [3, 2, 1, 1]
    assert [*chain(*_chunked(rows))] == rows
    assert list(_chunked([])) == []


@pytest.mark.parametrize(
    ("count", "sizes"), [(1, [1]), (4, [1] * 4), (9, [3, 3, 3]), (5, [2, 2, 1])]
)
def test_groups_of_neighbours(count, sizes):
    paths = [Path(str(n)) for n in range(count)]
    groups = list(_grouped(paths, 4))
    assert [len(group) for group in groups] == sizes
    assert [*chain(*groups)] == paths
