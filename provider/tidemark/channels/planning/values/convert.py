"""One value of a row as its column takes it: the reference for every faster way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import tzinfo
from typing import Any

from tidemark.channels.model.columns import Column, ColumnType, Kind
from tidemark.channels.model.rows import RowErrorKind
from tidemark.channels.planning.names import folded
from tidemark.channels.planning.values.numbers import NUMBERS
from tidemark.channels.planning.values.plain import plain_value
from tidemark.channels.planning.values.problem import ValueProblem, cut, shown
from tidemark.channels.planning.values.texts import TEXTS
from tidemark.channels.planning.values.times import to_date, to_timestamp, to_wall_clock
from tidemark.channels.planning.values.variants import json_value, to_variant

__all__ = ["column_for", "convert"]

_NO_ARRAY = ("", "null")


def convert(value: Any, kind: ColumnType, zone: tzinfo) -> Any:
    """The value in the form in which PyArrow takes it for this type; None stays None. Raises ValueProblem.

    A missing value of pandas is None too. TIMESTAMP and TIMESTAMP_NTZ are microseconds, VARIANT is a JSON text, MAP a
    list of pairs. STRUCT is a dict by the names of its fields in files. `zone`: of times without an offset.
    """
    value = plain_value(value)
    if value is None:
        return None
    plain = NUMBERS.get(kind.kind) or TEXTS.get(kind.kind)
    if plain is not None:
        return plain(value, kind)
    if kind.kind in _OF_VALUE:
        return _OF_VALUE[kind.kind](value)
    if kind.kind is Kind.TIMESTAMP:
        return to_timestamp(value, zone)
    return _NESTED[kind.kind](value, kind, zone)


def column_for(name: str, columns: Mapping[str, Column]) -> Column | None:
    """The column that a row's key names, without case or exactly in double quotes. `columns`: by name in upper case."""
    found = columns.get(folded(name).upper())
    is_exact = name.startswith('"') and name.endswith('"') and len(name) > 1
    return None if found is None or (is_exact and folded(name) != found.name) else found


def _array(value: Any, kind: ColumnType, zone: tzinfo) -> list[Any]:
    """A list, or a text with a JSON array. A single value is an array of one; "" and "null" are an array of NULL."""
    if isinstance(value, str):
        value = [None] if value.strip() in _NO_ARRAY else json_value(value)
    is_list = isinstance(value, list | tuple) or (hasattr(value, "__array__") and getattr(value, "ndim", 1) > 0)
    items = list(value) if is_list else [value]
    return [
        _part(item, _required(kind.element), kind.nullable_elements, zone, f"[{at}]") for at, item in enumerate(items)
    ]


def _map(value: Any, kind: ColumnType, zone: tzinfo) -> list[tuple[Any, Any]]:
    pairs = [
        (
            _part(key, _required(kind.key), False, zone, f"[key {cut(repr(key))}]"),
            _part(item, _required(kind.element), kind.nullable_elements, zone, f"[{cut(repr(key))}]"),
        )
        for key, item in _pairs(value)
    ]
    if len({repr(key) for key, _ in pairs}) != len(pairs):
        raise ValueProblem(RowErrorKind.INVALID_VALUE, "two keys of the object are the same key of the MAP")
    return pairs


def _struct(value: Any, kind: ColumnType, zone: tzinfo) -> dict[str, Any]:
    columns = {field.name.upper(): field for field in kind.fields}
    given: dict[str, Any] = {}
    for key, item in _pairs(value):
        field = column_for(str(key), columns)
        if field is None:
            raise ValueProblem(RowErrorKind.EXTRA_COLUMN, "the STRUCT has no such field", f".{cut(str(key))}")
        if field.name in given:
            raise ValueProblem(RowErrorKind.INVALID_VALUE, "the object has this field twice", f".{field.name}")
        given[field.name] = item
    return {
        field.physical: _part(given.get(field.name), field.type, field.nullable, zone, f".{field.name}")
        for field in kind.fields
    }


def _part(value: Any, kind: ColumnType, nullable: bool, zone: tzinfo, step: str) -> Any:
    try:
        found = convert(value, kind, zone)
    except ValueProblem as problem:
        raise problem.below(step) from None
    if found is None and not nullable:
        raise ValueProblem(RowErrorKind.NULL_VALUE, "it is NULL, and must not be", step)
    return found


def _pairs(value: Any) -> Collection[tuple[Any, Any]]:
    """The keys and values of an object; keys may come twice in a MAP as PyArrow shows it."""
    found = json_value(value) if isinstance(value, str) else value
    if isinstance(found, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in found):
        return found
    if not isinstance(found, Mapping):
        raise ValueProblem(RowErrorKind.WRONG_TYPE, f"{shown(value)} is not an object")
    return found.items()


def _required(kind: ColumnType | None) -> ColumnType:
    assert kind is not None
    return kind


_OF_VALUE: dict[Kind, Callable[[Any], Any]] = {
    Kind.DATE: to_date,
    Kind.TIMESTAMP_NTZ: to_wall_clock,
    Kind.VARIANT: to_variant,
}
_NESTED: dict[Kind, Callable[[Any, ColumnType, tzinfo], Any]] = {
    Kind.ARRAY: _array,
    Kind.MAP: _map,
    Kind.STRUCT: _struct,
}
