"""Frozen dataclasses as plain data (what JSON holds) with the arrays kept apart, and back, field by field.

The annotations of the fields say how to read them: dataclasses, tuples, dictionaries, arrays, numbers, words, and
`StopReason`s by their code. A value that does not fit its annotation is refused.
"""

import dataclasses
import functools
import types
import typing
from typing import Any

import numpy as np
from jaxtyping import AbstractArray

from dsgnar.solving.stop import StopReason

ARRAY = "[array]"  # marks the place of an array; no field can be called that


def to_plain(value: Any, arrays: list[np.ndarray]) -> Any:
    """Plain data. An array is appended to `arrays`, and its number there takes its place."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name), arrays) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        arrays.append(np.ascontiguousarray(value, value.dtype.newbyteorder("<")))
        return {ARRAY: len(arrays) - 1}
    if isinstance(value, StopReason):
        return value.code
    if isinstance(value, tuple):
        return [to_plain(v, arrays) for v in value]
    if isinstance(value, dict):
        return {k: to_plain(v, arrays) for k, v in value.items()}
    return value


def from_plain(kind: Any, data: Any, arrays: list[np.ndarray]) -> Any:
    """The value with the annotation `kind` that `to_plain` turned into `data`."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (option,) = (k for k in inner if k is not types.NoneType)
        return None if data is None else from_plain(option, data, arrays)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, data, arrays)
    if kind is np.ndarray or (isinstance(kind, type) and issubclass(kind, AbstractArray)):
        return _array(data, arrays)
    if kind is StopReason:
        return StopReason.of(data)
    if origin is tuple:
        return _tuple(inner, _is(list, data), arrays)
    if origin is dict:
        return {_is(str, k): from_plain(inner[1], v, arrays) for k, v in _is(dict, data).items()}
    if origin is typing.Literal:
        return _one_of(inner, data)
    if kind is float:
        return float(_is((int, float), data))
    return _is(kind, data)


def _dataclass(kind: Any, data: Any, arrays: list[np.ndarray]) -> Any:
    hints = _hints(kind)
    if _is(dict, data).keys() != hints.keys():
        raise ValueError(f"{kind.__name__} has the fields {', '.join(hints)}, not {', '.join(data)}")
    return kind(**{name: from_plain(hint, data[name], arrays) for name, hint in hints.items()})


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    """Annotations of the fields; a history has thousands of records, so they are looked up once."""
    hints = typing.get_type_hints(kind)
    return {f.name: hints[f.name] for f in dataclasses.fields(kind)}


def _array(data: Any, arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[_one_of(range(len(arrays)), _is(dict, data)[ARRAY])]


def _tuple(inner: tuple, data: list, arrays: list[np.ndarray]) -> tuple:
    kinds = inner[:1] * len(data) if inner[1:] == (...,) else inner
    return tuple(from_plain(kind, v, arrays) for kind, v in zip(kinds, data, strict=True))


def _one_of(known: Any, data: Any) -> Any:
    if data not in known or isinstance(data, bool):
        raise ValueError(f"{data!r} is none of {known}")
    return data


def _is(kind: Any, data: Any) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise TypeError(f"{data!r} is no {kind}")
    return data
