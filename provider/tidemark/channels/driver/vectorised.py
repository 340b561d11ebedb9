"""Whole columns of good values at once. Each way here gives what `planning.values.convert` gives, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.channels.driver.arrow_types import buffer_type
from tidemark.channels.model.columns import ColumnType, Kind
from tidemark.channels.planning.values.numbers import LARGEST_FLOAT
from tidemark.channels.planning.values.texts import MOST_BYTES
from tidemark.channels.planning.values.times import EPOCH

__all__ = ["from_array", "from_values"]

_WHOLE = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)
_NATIVE: dict[Kind, tuple[frozenset[type], ...]] = {
    Kind.BOOLEAN: (frozenset({bool}),),
    **dict.fromkeys(_WHOLE, (frozenset({int}),)),
    Kind.FLOAT: (frozenset({float}),),
    Kind.DOUBLE: (frozenset({float}), frozenset({int, float})),
    Kind.DECIMAL: (frozenset({int}), frozenset({int, Decimal})),
    Kind.STRING: (frozenset({str}),),
    Kind.BINARY: (frozenset({bytes}),),
    Kind.DATE: (frozenset({date}),),
    Kind.TIMESTAMP: (frozenset({datetime}),),
    Kind.TIMESTAMP_NTZ: (frozenset({datetime}),),
}
_FAILS = (pa.ArrowException, TypeError, ValueError, OverflowError)
_DATE = r"^\d{4}-\d\d-\d\d$"
_WALL_CLOCK = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?$"
_IN_UTC = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?Z$"
_WHOLE_TEXT = r"^\d{1,18}$"
_UTC_NAMES = ("UTC", "Etc/UTC", "GMT", "Z")
_TIMES = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
_FIRST_DAY, _LAST_DAY = (date.min - EPOCH.date()).days, (date.max - EPOCH.date()).days
_MICROS_OF_DAY = 86_400_000_000
_FIRST = {Kind.DATE: _FIRST_DAY, **dict.fromkeys(_TIMES, _FIRST_DAY * _MICROS_OF_DAY)}
_LAST = {Kind.DATE: _LAST_DAY, **dict.fromkeys(_TIMES, (_LAST_DAY + 1) * _MICROS_OF_DAY - 1)}


def from_values(values: Sequence[Any], kind: ColumnType, zone: tzinfo) -> pa.Array | None:
    """The column of Python values of one type; None if they are of others, or one of them may not fit."""
    kinds = frozenset(map(type, values)) - {type(None)}
    if kind.kind not in _NATIVE:
        return None if kinds else pa.nulls(len(values), buffer_type(kind))
    if kinds and not any(kinds <= native for native in _NATIVE[kind.kind]):
        return _texts(values, kinds, kind, zone)
    if kind.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ) and not _same_clock(values, kind, zone):
        return None
    try:
        if kind.kind is Kind.FLOAT:
            return _narrowed(pa.array(values, pa.float64()))
        return _checked(pa.array(values, buffer_type(kind)), kind)
    except _FAILS:
        return None


def from_array(array: pa.Array, kind: ColumnType, zone: tzinfo) -> pa.Array | None:
    """The column of Arrow values; None if a value may not fit, or the type needs the rules value by value."""
    wanted = buffer_type(kind)
    if array.null_count == len(array):
        return pa.nulls(len(array), wanted)
    try:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_string_view(array.type):
            array = array.cast(pa.string())
        if pa.types.is_large_string(array.type) or pa.types.is_string(array.type):
            array.validate(full=True)  # Arrow lets a text have bytes that are not UTF-8
            return _from_texts(array.cast(pa.string()), kind, zone)
        if array.type == wanted and kind.kind not in (Kind.VARIANT, Kind.ARRAY, Kind.MAP, Kind.STRUCT):
            return _checked(array, kind)
        found = _cast(array, kind, zone)
        return None if found is None else _checked(found, kind)
    except _FAILS:
        return None


def _texts(values: Sequence[Any], kinds: frozenset[type], kind: ColumnType, zone: tzinfo) -> pa.Array | None:
    if kinds != {str}:
        return None
    try:
        return _from_texts(pa.array(values, pa.string()), kind, zone)
    except _FAILS:
        return None


def _same_clock(values: Sequence[Any], kind: ColumnType, zone: tzinfo) -> bool:
    """Whether PyArrow reads each time as the rules do: as UTC without an offset, and as the wall clock for NTZ."""
    if kind.kind is Kind.TIMESTAMP:
        return zone is UTC or all(value is None or value.tzinfo is not None for value in values)
    return all(value is None or value.tzinfo is None for value in values)


def _checked(array: pa.Array, kind: ColumnType) -> pa.Array | None:
    """The array if its texts and times are within their limits."""
    if array.null_count == len(array):
        return array
    if kind.kind in _LAST:
        found = pc.min_max(array)
        return array if _FIRST[kind.kind] <= found["min"].value and found["max"].value <= _LAST[kind.kind] else None
    if kind.kind is not Kind.STRING:
        return array
    if kind.length is not None and (pc.max(pc.utf8_length(array)).as_py() or 0) > kind.length:
        return None
    return array if (pc.max(pc.binary_length(array)).as_py() or 0) <= MOST_BYTES else None


def _narrowed(array: pa.Array) -> pa.Array | None:
    """The numbers as FLOAT, unless one is too large for it."""
    is_large = pc.and_(pc.is_finite(array), pc.greater(pc.abs(array), LARGEST_FLOAT))
    return None if pc.any(is_large).as_py() else pc.cast(array, pa.float32(), safe=False)


def _cast(array: pa.Array, kind: ColumnType, zone: tzinfo) -> pa.Array | None:
    """Between types that have the same values, by PyArrow's own checks."""
    given = array.type
    if pa.types.is_integer(given) and kind.kind in _WHOLE:
        return pc.cast(array, buffer_type(kind))
    if pa.types.is_integer(given) and kind.kind is Kind.DECIMAL:
        return pc.cast(pc.cast(array, pa.decimal128(38, kind.scale)), buffer_type(kind))
    if pa.types.is_integer(given) and kind.kind is Kind.DOUBLE and given.bit_width <= 32:
        return pc.cast(array, pa.float64())
    if pa.types.is_floating(given) and kind.kind in (Kind.FLOAT, Kind.DOUBLE):
        numbers = pc.cast(array, pa.float64())
        return numbers if kind.kind is Kind.DOUBLE else _narrowed(numbers)
    if pa.types.is_decimal(given) and kind.kind is Kind.DECIMAL:
        return pc.cast(array, buffer_type(kind))
    if pa.types.is_large_binary(given) and kind.kind is Kind.BINARY:
        return pc.cast(array, pa.binary())
    if pa.types.is_timestamp(given):
        return _from_timestamps(array, kind, zone)
    return None


def _from_timestamps(array: pa.Array, kind: ColumnType, zone: tzinfo) -> pa.Array | None:
    if array.type.unit == "ns":
        array = pc.floor_temporal(array, unit="microsecond")
    has_zone = array.type.tz is not None
    if kind.kind is Kind.TIMESTAMP and (has_zone or zone is UTC):
        return pc.cast(array, pa.timestamp("us", array.type.tz or "UTC")).cast(buffer_type(kind))
    if kind.kind is Kind.TIMESTAMP_NTZ and (not has_zone or array.type.tz in _UTC_NAMES):
        return pc.cast(pc.cast(array, pa.timestamp("us", array.type.tz)), pa.timestamp("us"))
    return None


def _from_texts(array: pa.Array, kind: ColumnType, zone: tzinfo) -> pa.Array | None:
    """Texts in the plain forms; others are for the rules."""
    match kind.kind:
        case Kind.STRING:
            return _checked(array, kind)
        case Kind.LONG | Kind.INTEGER | Kind.SHORT | Kind.BYTE | Kind.DECIMAL:
            return _if_all(array, _WHOLE_TEXT, kind)
        case Kind.DATE:
            return _if_all(array, _DATE, kind)
        case Kind.TIMESTAMP:
            if zone is UTC and (found := _if_all(array, _WALL_CLOCK, ColumnType(Kind.TIMESTAMP_NTZ))) is not None:
                return found.cast(buffer_type(kind))
            return _if_all(array, _IN_UTC, kind)
        case Kind.TIMESTAMP_NTZ:
            return _if_all(array, _WALL_CLOCK, kind)
        case _:
            return None


def _if_all(array: pa.Array, form: str, kind: ColumnType) -> pa.Array | None:
    if not pc.all(pc.match_substring_regex(array, form)).as_py():
        return None
    return _checked(pc.cast(array, buffer_type(kind)), kind)
