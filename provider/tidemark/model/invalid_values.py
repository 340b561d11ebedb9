"""Checks of plain values that a person may have edited, before they are parsed as the JSON form of a type."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Iterable
from datetime import datetime
from typing import Any

__all__ = ["InvalidValue", "invalid_value"]


@dataclasses.dataclass(frozen=True)
class InvalidValue:
    """The first field that does not fit, such as `offset.version` or `view_bases[1].table`, and its problem."""

    field: str
    problem: str


def invalid_value(kind: Any, plain: Any, field: str = "") -> InvalidValue | None:
    """The first misfit; None if `from_plain(kind, plain)` gives a `kind` with parts of exactly the annotated types."""
    origin, arms = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (inner,) = [arm for arm in arms if arm is not type(None)]
        return None if plain is None else invalid_value(inner, plain, field)
    if origin is tuple:
        return _items(arms[0], plain, field)
    if origin is not None and issubclass(origin, typing.Mapping):
        return _entries(arms[1], plain, field)
    if dataclasses.is_dataclass(kind):
        return _parts(typing.cast("type", kind), plain, field)
    return None if kind is Any else _scalar(kind, plain, field)


def _items(kind: Any, plain: Any, field: str) -> InvalidValue | None:
    if not isinstance(plain, list):
        return InvalidValue(field, f"a list is needed, not {plain!r}")
    return _first(invalid_value(kind, item, f"{field}[{number}]") for number, item in enumerate(plain))


def _entries(kind: Any, plain: Any, field: str) -> InvalidValue | None:
    if not isinstance(plain, dict):
        return InvalidValue(field, f"a mapping is needed, not {plain!r}")
    return _first(invalid_value(kind, entry, f"{field}[{name!r}]") for name, entry in plain.items())


def _parts(kind: type, plain: Any, field: str) -> InvalidValue | None:
    if not isinstance(plain, dict):
        return InvalidValue(field, f"a mapping is needed, not {plain!r}")
    hints = typing.get_type_hints(kind)
    fields = {part.name: part for part in dataclasses.fields(kind)}
    unknown = sorted(str(name) for name in plain if name not in fields)
    if unknown:
        return InvalidValue(_under(field, unknown[0]), "this release has no such field")
    needed = (n for n, part in fields.items() if part.default is part.default_factory is dataclasses.MISSING)
    missing = [name for name in needed if name not in plain]
    if missing:
        return InvalidValue(_under(field, missing[0]), "it is missing")
    return _first(invalid_value(hints[name], part, _under(field, name)) for name, part in plain.items())


def _scalar(kind: type, plain: Any, field: str) -> InvalidValue | None:
    if issubclass(kind, enum.Enum):
        values = [member.value for member in kind]
        return None if plain in values else InvalidValue(field, f"it must be one of {values}, not {plain!r}")
    if kind is datetime:
        return None if _is_aware_time(plain) else InvalidValue(field, f"a time with its zone is needed, not {plain!r}")
    return None if type(plain) is kind else InvalidValue(field, f"{kind.__name__} is needed, not {plain!r}")


def _is_aware_time(plain: Any) -> bool:
    try:
        return datetime.fromisoformat(plain).tzinfo is not None
    except (TypeError, ValueError):
        return False


def _first(found: Iterable[InvalidValue | None]) -> InvalidValue | None:
    return next((one for one in found if one is not None), None)


def _under(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name
