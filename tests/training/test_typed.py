from collections.abc import Sequence
from typing import Literal

import pytest

from talkconv.training.typed import typed


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (3, int, 3),
        (3, float, 3.0),
        (3, int | float, 3),
        (3, int | None, 3),
        (None, int | None, None),
        ("none", int | None, None),
        ("none", str, "none"),
        ([1, 2], tuple[float, float], (1.0, 2.0)),
        ([1, 2], Sequence[int], [1, 2]),
        ([], Sequence[int], []),
        ("a", str | Sequence[str], "a"),
        (["a"], str | Sequence[str], ["a"]),
        ("x", Literal["x", "y"], "x"),
        ({"a": 1}, dict[str, float], {"a": 1.0}),
        (True, bool, True),
    ],
)
def test_values_are_converted_to_the_type_of_the_setting(value, annotation, expected):
    result = typed(value, annotation, "a.b")
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "annotation", "message"),
    [
        ("3", int, "a.b must be a whole number, got '3'"),
        # true is an int to Python, but never what a recipe means
        (True, int, "a.b must be a whole number, got True"),
        (1.5, int, "a.b must be a whole number, got 1.5"),
        ("3", float, "a.b must be a number, got '3'"),
        ([1], tuple[float, float], r"a.b must be a list of 2: a number, a number, got \[1\]"),
        ([1, "2"], Sequence[int], r"a.b must be a list of whole numbers, got \[1, '2'\]"),
        ("z", Literal["x", "y"], "a.b must be one of 'x', 'y', got 'z'"),
        ({"a": "1"}, dict[str, float], "a.b must be a table of numbers, got"),
        (1, str | None, "a.b must be a text or 'none', got 1"),
    ],
)
def test_what_does_not_fit_is_named(value, annotation, message):
    with pytest.raises(ValueError, match=message):
        typed(value, annotation, "a.b")
