"""Checks the values of a recipe against the types of the settings."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from talkconv.messages import did_you_mean

_Settings = TypeVar("_Settings")

# TOML has no null
NONE = "none"
_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_PLURALS = {int: "whole numbers", float: "numbers", str: "texts"}


def settings_from(
    kind: type[_Settings], section: str, values: Mapping[str, Any], file: str = "a recipe"
) -> _Settings:
    """Make the settings of a dataclass from a section of a TOML file, whose keys must be known.

    `file` is the name of the file in messages.
    """
    annotations = get_type_hints(kind)
    checked = {}
    for key, value in values.items():
        if key not in annotations:
            hint = did_you_mean(key, list(annotations), f"[{section}] has")
            raise ValueError(f"no setting is called {section}.{key}: {hint}")
        checked[key] = typed(value, annotations[key], f"{section}.{key}")
    for each in fields(cast("Any", kind)):
        required = each.default is MISSING and each.default_factory is MISSING
        if required and each.name not in checked:
            raise ValueError(f"{file} must have {section}.{each.name}")
    return kind(**checked)


def typed(value: Any, annotation: Any, where: str) -> Any:
    """Convert `value` to the type `annotation`, or raise a ValueError that names `where`.

    A whole number can become a float, a list a tuple, and "none" None, if the type allows it.

    >>> typed(1, float, "training.clip")
    1.0
    """
    fitting, result = _fit(value, annotation)
    if not fitting:
        raise ValueError(f"{where} must be {type_in_words(annotation)}, got {value!r}")
    return result


def _fit(value: Any, annotation: Any) -> tuple[bool, Any]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        if value == NONE and types.NoneType in inner:
            return True, None
        # Try the exact type first, so that 3 stays an int if both int and float are allowed.
        for each in sorted(inner, key=lambda each: type(value) is not each):
            fitting, result = _fit(value, each)
            if fitting:
                return True, result
        return False, None
    if origin is Literal:
        return value in inner, value
    if origin is tuple:
        return _fit_tuple(value, inner)
    if origin is dict:
        return _fit_dict(value, inner)
    if origin is not None and issubclass(origin, Sequence):
        return _fit_list(value, inner[0])
    if annotation is float and type(value) is int:
        return True, float(value)
    return type(value) is annotation, value


def _fit_list(value: Any, inner: Any) -> tuple[bool, Any]:
    if not isinstance(value, list | tuple):
        return False, None
    fitted = [_fit(each, inner) for each in value]
    return all(fitting for fitting, _ in fitted), [result for _, result in fitted]


def _fit_tuple(value: Any, inner: tuple[Any, ...]) -> tuple[bool, Any]:
    if not isinstance(value, list | tuple) or len(value) != len(inner):
        return False, None
    fitted = [_fit(each, kind) for each, kind in zip(value, inner, strict=True)]
    return all(fitting for fitting, _ in fitted), tuple(result for _, result in fitted)


def _fit_dict(value: Any, inner: tuple[Any, ...]) -> tuple[bool, Any]:
    if not isinstance(value, Mapping):
        return False, None
    fitting, results = _fit_list(list(value.values()), inner[1])
    return fitting, dict(zip(value, results or [], strict=fitting))


def type_in_words(annotation: Any) -> str:
    """Return the type of a setting in words.

    >>> type_in_words(tuple[float, float]), type_in_words(str | Sequence[str] | None)
    ('a list of 2: a number, a number', "a text or a list of texts or 'none'")
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(
            repr(NONE) if each is types.NoneType else type_in_words(each) for each in inner
        )
    if origin is Literal:
        return f"one of {', '.join(repr(each) for each in inner)}"
    if origin is tuple:
        return f"a list of {len(inner)}: {', '.join(type_in_words(each) for each in inner)}"
    if origin is dict:
        return f"a table of {_PLURALS.get(inner[1], inner[1])}"
    if origin is not None:
        return f"a list of {_PLURALS.get(inner[0], inner[0])}"
    return _WORDS.get(annotation, str(annotation))
