"""The JSON form of the model: dataclasses, enums, tuples, mappings, UTC times and spans of time, both ways.

It is strict: an unknown key, a missing field or a naive time is an error. Two releases that disagree stop at the edge.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
import typing
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")
MICROSECOND = timedelta(microseconds=1)

__all__ = ["from_json", "from_plain", "to_json", "to_plain"]


def to_plain(value: Any) -> Any:
    """The JSON form of a value: dataclasses as dicts, tuples as lists, enums as their value. Times are ISO 8601 with an
    offset, spans microseconds.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"a time without a zone has no JSON form: {value!r}")
        return value.isoformat()
    if isinstance(value, timedelta):
        return value // MICROSECOND
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, typing.Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    return value


def from_plain(kind: Any, plain: Any) -> Any:
    """The inverse of `to_plain` for the annotation `kind`. Raises ValueError if `plain` does not fit."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        if plain is None:
            return None
        (inner,) = [arm for arm in typing.get_args(kind) if arm is not type(None)]
        return from_plain(inner, plain)
    if origin is tuple:
        item = typing.get_args(kind)[0]
        return tuple(from_plain(item, entry) for entry in plain)
    if origin is not None and issubclass(origin, typing.Mapping):
        item = typing.get_args(kind)[1]
        return {key: from_plain(item, entry) for key, entry in plain.items()}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass_from_plain(kind, plain)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(plain)
    if kind in _SCALARS:
        return _SCALARS[kind](plain)
    return plain


_SCALARS: dict[Any, Callable[[Any], Any]] = {
    datetime: datetime.fromisoformat,
    timedelta: lambda microseconds: microseconds * MICROSECOND,
}


_hints = functools.cache(typing.get_type_hints)


def _dataclass_from_plain(kind: type, plain: Any) -> Any:
    hints = _hints(kind)
    unknown = set(plain) - set(hints)
    missing = {f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING} - set(
        plain
    )
    if unknown or missing:
        raise ValueError(f"{kind.__name__}: unknown {sorted(unknown)}, missing {sorted(missing)}")
    return kind(**{name: from_plain(hints[name], entry) for name, entry in plain.items()})


def to_json(value: Any) -> str:
    """Canonical JSON: sorted keys, no white space, so that equal values have equal text and digest."""
    return json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def from_json(kind: type[T], text: str) -> T:
    """The value that `to_json` wrote. Raises ValueError if the text does not fit `kind`."""
    try:
        parsed: T = from_plain(kind, json.loads(text))
    except (TypeError, AttributeError, LookupError, RecursionError) as error:  # of JSON with another form
        raise ValueError(f"it is no {kind.__name__}: {error}") from error
    return parsed
