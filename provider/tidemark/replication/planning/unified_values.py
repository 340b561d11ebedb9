"""Values of unified types as Datastream's files have them, out of their canonical texts and back.

A value that Avro's type cannot hold, such as an infinite date, has no Avro value. JSON has it as the text.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from tidemark.model.foreign_json import parsed
from tidemark.replication.model.replication import TypeKind, UnifiedType
from tidemark.replication.planning.events import json_text
from tidemark.replication.planning.types import decimal_of

__all__ = ["JsonNumber", "TextTo", "avro_value", "json_of", "json_token", "text_of_avro", "text_of_json"]

TextTo: TypeAlias = Callable[[str], Any]

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)(\+00)?")
_ISO = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)(Z|\+00:00)?")
_WHOLE = {TypeKind.SMALLINT: 15, TypeKind.INTEGER: 31, TypeKind.LONG: 63}  # bits
_NUMBERS = (*_WHOLE, TypeKind.FLOAT, TypeKind.DOUBLE)
_MOMENTS = (TypeKind.DATETIME, TypeKind.TIMESTAMP)
_NESTED = (TypeKind.JSON, TypeKind.ARRAY)
_DIGITS_OF_FLOAT = (6, 7, 8, 9)


class JsonNumber(str):
    """The digits of a number in JSON, as they were written."""

    __slots__ = ()


def json_token(kind: UnifiedType) -> Callable[[str], str]:
    """A function from a canonical text to JSON: a number for a number, ISO 8601 for a time, nested JSON for JSON."""
    if kind.kind is TypeKind.BOOLEAN:
        return lambda text: text if text in ("true", "false") else json_text(text)
    if kind.kind in _NUMBERS or decimal_of(kind) is not None:
        return lambda text: text if _NUMBER.fullmatch(text) else json_text(text)
    if kind.kind in _MOMENTS:
        return _moment_token
    return _nested_token if kind.kind in _NESTED else json_text


def _moment_token(text: str) -> str:
    found = _MOMENT.fullmatch(text)
    return json_text(text) if found is None else f'"{found[1]}T{found[2]}{"Z" if found[3] else ""}"'


def _nested_token(text: str) -> str:
    """Objects and arrays are nested. A scalar is its text: a JSON null would be NULL otherwise."""
    if not text.lstrip().startswith(("{", "[")):
        return json_text(text)
    try:
        parsed(text)
    except ValueError:
        return json_text(text)
    return text.replace("\n", " ").replace("\r", " ")  # between tokens; strings in JSON have none


def text_of_json(value: Any, kind: UnifiedType | None = None) -> str | None:
    """The canonical text of a value that was parsed with JsonNumber for its numbers. Without `kind`, times stay as
    they are written.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return json_of(value, "" if kind is not None and kind.kind is TypeKind.ARRAY else " ")
    if kind is None or kind.kind not in _MOMENTS or (found := _ISO.fullmatch(value)) is None:
        return str(value)
    return f"{found[1]} {found[2]}{'+00' if kind.kind is TypeKind.TIMESTAMP else ''}"  # Datastream leaves zones out


def json_of(value: Any, space: str = " ") -> str:
    """The JSON text of a value that was parsed with JsonNumber for its numbers. `space`: behind commas and colons."""
    if isinstance(value, Mapping):
        pairs = (f"{json_text(str(name))}:{space}{json_of(one, space)}" for name, one in value.items())
        return "{" + f",{space}".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + f",{space}".join(json_of(one, space) for one in value) + "]"
    if isinstance(value, str) and not isinstance(value, JsonNumber):
        return json_text(value)
    named = {True: "true", False: "false"} if isinstance(value, bool) else {None: "null"}
    return named.get(value, str(value))


def avro_value(kind: UnifiedType) -> TextTo:
    """A function from a canonical text to the value for Avro. It raises ValueError for a text that the type cannot
    hold.
    """
    if kind.kind in _WHOLE:
        return _whole_of(_WHOLE[kind.kind])
    digits = decimal_of(kind)
    if digits is not None:
        return _decimal_of(*digits)
    return _AVRO.get(kind.kind, str)


def _whole_of(bits: int) -> TextTo:
    def value(text: str) -> int:
        number = int(text)
        if not -(1 << bits) <= number < 1 << bits:
            raise ValueError(text)
        return number

    return value


def _decimal_of(precision: int, scale: int) -> TextTo:
    def value(text: str) -> Decimal:
        try:
            number = Decimal(text)
        except InvalidOperation as error:
            raise ValueError(text) from error
        if not number.is_finite() or number != round(number, scale) or number.adjusted() >= precision - scale:
            raise ValueError(text)
        return number

    return value


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _date(text: str) -> date:
    if len(text) != len("2024-02-29"):
        raise ValueError(text)
    return date.fromisoformat(text)


def _datetime(text: str) -> dict[str, Any]:
    at = _moment(text)
    return {"date": at.date(), "time": at.time()}


def _timestamp(text: str) -> datetime:
    return _moment(text).replace(tzinfo=UTC)


def _moment(text: str) -> datetime:
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return datetime.fromisoformat(f"{found[1]} {found[2]}")


_AVRO: Mapping[TypeKind, TextTo] = {
    TypeKind.BOOLEAN: _boolean,
    TypeKind.FLOAT: float,
    TypeKind.DOUBLE: float,
    TypeKind.BYTES: bytes.fromhex,
    TypeKind.DATE: _date,
    TypeKind.DATETIME: _datetime,
    TypeKind.TIMESTAMP: _timestamp,
}


def text_of_avro(value: Any, *, single: bool = False) -> str | None:
    """The canonical text of a value that Avro's reader gives. `single`: of a float with 32 bits."""
    if value is None:
        return None
    if isinstance(value, float):
        return _shortest(value, single)
    text_of = next((text_of for kind, text_of in _TEXTS_OF_AVRO if isinstance(value, kind)), str)
    return text_of(value)


def _text_of_record(value: Mapping[str, Any]) -> str:
    """Records of Datastream: `datetime`, and `timestampTz` with the offset in milliseconds. Another one is JSON."""
    if set(value) == {"date", "time"} and isinstance(value["date"], date) and isinstance(value["time"], time):
        return _text_of_moment(datetime.combine(value["date"], value["time"].replace(tzinfo=None)))
    if set(value) == {"timestamp", "offset"} and isinstance(value["timestamp"], datetime):
        return _text_of_moment(value["timestamp"])
    return json_of({name: text_of_avro(one) for name, one in value.items()})


def _text_of_moment(at: datetime) -> str:
    if at.tzinfo is None:
        return _without_zeros(at.isoformat(" "))
    return _without_zeros(at.astimezone(UTC).replace(tzinfo=None).isoformat(" ")) + "+00"


def _without_zeros(text: str) -> str:
    return text.rstrip("0") if "." in text else text


_TEXTS_OF_AVRO: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: "true" if value else "false"),
    (Decimal, lambda value: format(value, "f")),
    (bytes, bytes.hex),
    (datetime, _text_of_moment),  # which is a date, too
    (date, date.isoformat),
    (time, lambda value: _without_zeros(value.replace(tzinfo=None).isoformat())),
    (dict, _text_of_record),
    (list, lambda value: json_of([text_of_avro(one) for one in value])),
)


def _shortest(value: float, single: bool) -> str:
    text = repr(value)
    if single and value == value and value not in (float("inf"), float("-inf")):
        packed = struct.pack("f", value)
        tried = (f"{value:.{digits}g}" for digits in _DIGITS_OF_FLOAT)
        text = next((one for one in tried if struct.pack("f", float(one)) == packed), text)
    named = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return named.get(text, text.removesuffix(".0"))
