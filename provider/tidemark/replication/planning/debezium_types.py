"""Debezium's types as unified ones, and its values as canonical texts, by the semantic name of a field."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from tidemark.replication.model.replication import TypeKind, UnifiedType
from tidemark.replication.planning.debezium_fields import Field
from tidemark.replication.planning.debezium_times import date_text, duration_text, moment_text, zoned_text

__all__ = ["LOSSY_TIMES", "ColumnType", "ValueText", "bare_text", "bare_type", "column_type", "json_value"]

ValueText: TypeAlias = Callable[[Any], str]

LOSSY_TIMES = ("org.apache.kafka.connect.data.Time", "org.apache.kafka.connect.data.Timestamp")
"""Semantic names of time.precision.mode=connect: microseconds of the database are cut off."""

_T = TypeKind
_CONNECT = "org.apache.kafka.connect.data."
_TIME = "io.debezium.time."
_DATA = "io.debezium.data."
_NATIVE = {_T.SMALLINT: "smallint", _T.INTEGER: "integer", _T.LONG: "bigint", _T.STRING: "text", _T.DOUBLE: "double"}
_NAN = ("NaN", "Infinity", "-Infinity")
_UNIX_DAY = dt.date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class ColumnType:
    """`native`: the type in words by which a later change of it is judged (`planning/native`). `text`: how a value
    becomes its canonical text; it raises ValueError, TypeError and the like for a value of another type.
    """

    unified: UnifiedType
    native: str
    text: ValueText


def column_type(field: Field, *, numeric_as: str | None = None) -> ColumnType:
    """The type of a column with a schema. `numeric_as`: as in ReplicationOptions.

    Raises ValueError for a column whose values Debezium writes wrongly by its settings. Such are an unsigned BIGINT
    as a signed one, and a decimal as a floating-point number.
    """
    _require_exact(field)
    if field.semantic == _CONNECT + "Decimal":
        return _decimal(field)
    if field.semantic == _DATA + "VariableScaleDecimal":
        return _numeric(numeric_as, _variable_text)
    if field.semantic is not None and field.semantic in _SEMANTICS:
        kind, text = _SEMANTICS[field.semantic]
        return ColumnType(UnifiedType(kind), field.source_type.lower() or field.semantic, text)
    if field.semantic == _DATA + "Bits":
        length = int(field.parameters.get("length", 0))
        return ColumnType(UnifiedType(_T.STRING), f"bit({length})", lambda value: _bits_text(value, length))
    if field.kind == "string" and (declared := _declared_decimal(field)) is not None:
        return ColumnType(declared, f"numeric({declared.precision},{declared.scale})", str)
    return _plain(field, numeric_as)


def _plain(field: Field, numeric_as: str | None) -> ColumnType:
    if field.kind == "array":
        item = column_type(field.item or Field("", "string"), numeric_as=numeric_as)
        return ColumnType(UnifiedType(_T.ARRAY, item=item.unified), f"{item.native}[]", _array_text(item.text))
    if field.kind not in _PLAIN:
        raise ValueError(f"column {field.name} has the type {field.kind}, which is none of Kafka Connect")
    kind, text = _PLAIN[field.kind]
    native = field.source_type.lower() or _NATIVE.get(kind, kind.value)
    return ColumnType(UnifiedType(kind), native, text)


def _require_exact(field: Field) -> None:
    of = field.source_type
    if "UNSIGNED" in of and of.startswith("BIGINT") and field.kind == "int64":
        raise ValueError(
            f"column {field.name} is a {of}, and comes as a signed number, in which large values are negative; set"
            " bigint.unsigned.handling.mode=precise"
        )
    if of.split("(")[0].split(" ")[0] in ("DECIMAL", "NUMERIC", "NUMBER", "MONEY") and field.kind == "double":
        raise ValueError(
            f"column {field.name} is a {of}, and comes as a floating-point number; set decimal.handling.mode to precise"
            " or string"
        )


def _decimal(field: Field) -> ColumnType:
    scale = int(field.parameters.get("scale", 0))
    said = field.parameters.get("connect.decimal.precision") or field.parameters.get("__debezium.source.column.length")
    precision = None if said is None else int(said)
    kind = UnifiedType(_T.DECIMAL, precision, scale) if precision is not None else UnifiedType(_T.DECIMAL)
    native = "numeric" if precision is None else f"numeric({precision},{scale})"
    return ColumnType(kind, native, lambda value: _decimal_text(value, scale))


def _numeric(numeric_as: str | None, text: ValueText) -> ColumnType:
    """A numeric that has no precision: its values differ in scale."""
    if numeric_as in (None, "string"):
        return ColumnType(UnifiedType(_T.DECIMAL), "numeric", text)
    precision, scale = (int(part) for part in str(numeric_as).strip().lower()[len("decimal(") : -1].split(","))
    return ColumnType(UnifiedType(_T.DECIMAL, precision, scale), "numeric", text)


def _declared_decimal(field: Field) -> UnifiedType | None:
    of = field.source_type.split("(")[0].split(" ")[0]
    length = field.parameters.get("__debezium.source.column.length")
    if of not in ("DECIMAL", "NUMERIC") or length is None:
        return None
    return UnifiedType(_T.DECIMAL, int(length), int(field.parameters.get("__debezium.source.column.scale", 0)))


def _decimal_text(value: Any, scale: int) -> str:
    """Of the unscaled number in base64, or of a plain number."""
    if isinstance(value, str):
        return _scaled_text(_bytes_of(value), scale)
    if isinstance(value, bytes):
        return _scaled_text(value, scale)
    return format(value if isinstance(value, Decimal) else Decimal(value), "f")


def _scaled_text(unscaled: bytes, scale: int) -> str:
    """Of any number of digits: no context rounds it."""
    number = int.from_bytes(unscaled, "big", signed=True)
    return format(Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale)), "f")


def _variable_text(value: Any) -> str:
    if isinstance(value, Mapping):
        unscaled = value["value"]
        return _scaled_text(unscaled if isinstance(unscaled, bytes) else _bytes_of(unscaled), int(value["scale"]))
    return _decimal_text(value, 0) if not isinstance(value, str) else value


def _bytes_of(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _hex(value: Any) -> str:
    return (value if isinstance(value, bytes) else _bytes_of(value)).hex()


def _bits_text(value: Any, length: int) -> str:
    """Debezium writes the lowest byte first."""
    number = int.from_bytes(value if isinstance(value, bytes) else _bytes_of(value), "little")
    return f"{number:b}".zfill(length)


def _whole(value: Any) -> str:
    """Raises TypeError for a number that is not whole."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return str(value)


def _floating(value: Any) -> str:
    if isinstance(value, str):
        if value not in _NAN:
            raise ValueError(f"{value!r} is not a number")
        return value
    text = repr(float(value))
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)


def _truth(value: Any) -> str:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return "true" if value else "false"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def json_value(value: Any) -> Any:
    """As JSON can have it: bytes in hexadecimal digits, numbers as they were."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {str(name): json_value(one) for name, one in value.items()}
    return [json_value(one) for one in value] if isinstance(value, list) else value


def _json(value: Any) -> str:
    return json.dumps(json_value(value), ensure_ascii=False, separators=(",", ":"), default=str)


def _geometry(value: Any) -> str:
    """`{"wkb": hexadecimal digits, "srid": …}`, and x and y of a point."""
    shown = {name: one for name, one in value.items() if one is not None}
    if isinstance(shown.get("wkb"), str):
        shown["wkb"] = _bytes_of(shown["wkb"]).hex()
    return _json(shown)


def _array_text(item: ValueText) -> ValueText:
    def text(value: Any) -> str:
        return json.dumps([None if one is None else item(one) for one in value], ensure_ascii=False)

    return text


def _units(nanoseconds: int, to: Callable[[int], str]) -> ValueText:
    return lambda value: to(int(value) * nanoseconds)


def _day(value: Any) -> str:
    return date_text(value.toordinal() - _UNIX_DAY) if isinstance(value, dt.date) else date_text(int(value))


def _moment_ms(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    return moment_text(int(value) * 1_000_000)


def _time_ms(value: Any) -> str:
    return value.isoformat() if isinstance(value, dt.time) else duration_text(int(value) * 1_000_000)


def _iso_date(value: Any) -> str:
    return _text(value).removesuffix("Z")


def _iso_moment(value: Any) -> str:
    return zoned_text(_text(value)).removesuffix("+00")


_SEMANTICS: Mapping[str, tuple[TypeKind, ValueText]] = {
    _TIME + "Date": (_T.DATE, _day),
    _CONNECT + "Date": (_T.DATE, _day),
    _TIME + "IsoDate": (_T.DATE, _iso_date),
    _TIME + "Time": (_T.STRING, _units(1_000_000, duration_text)),
    _TIME + "MicroTime": (_T.STRING, _units(1000, duration_text)),
    _TIME + "NanoTime": (_T.STRING, _units(1, duration_text)),
    _CONNECT + "Time": (_T.STRING, _time_ms),
    _TIME + "Timestamp": (_T.DATETIME, _units(1_000_000, moment_text)),
    _TIME + "MicroTimestamp": (_T.DATETIME, _units(1000, moment_text)),
    _TIME + "NanoTimestamp": (_T.DATETIME, _units(1, moment_text)),
    _CONNECT + "Timestamp": (_T.DATETIME, _moment_ms),
    _TIME + "IsoTimestamp": (_T.DATETIME, _iso_moment),
    _TIME + "ZonedTimestamp": (_T.TIMESTAMP, lambda value: zoned_text(_text(value))),
    _TIME + "Year": (_T.INTEGER, _whole),
    _TIME + "MicroDuration": (_T.LONG, _whole),
    _TIME + "NanoDuration": (_T.LONG, _whole),
    _DATA + "Json": (_T.JSON, _text),
    _DATA + "geometry.Geometry": (_T.JSON, _geometry),
    _DATA + "geometry.Geography": (_T.JSON, _geometry),
    _DATA + "geometry.Point": (_T.JSON, _geometry),
    _DATA + "SparseVector": (_T.JSON, _json),
}
"""The others are texts or numbers that are what they look like: ZonedTime, Interval, Uuid, Xml, Enum, Ltree …"""

_PLAIN: Mapping[str, tuple[TypeKind, ValueText]] = {
    "boolean": (_T.BOOLEAN, _truth),
    "int8": (_T.SMALLINT, _whole),
    "int16": (_T.SMALLINT, _whole),
    "int32": (_T.INTEGER, _whole),
    "int64": (_T.LONG, _whole),
    "float": (_T.FLOAT, _floating),
    "float32": (_T.FLOAT, _floating),
    "double": (_T.DOUBLE, _floating),
    "float64": (_T.DOUBLE, _floating),
    "string": (_T.STRING, _text),
    "bytes": (_T.BYTES, _hex),
    "map": (_T.JSON, _json),
    "struct": (_T.JSON, _json),
}


def bare_type(value: Any) -> TypeKind | None:
    """The type of a value without a schema; None for null, which tells nothing."""
    if value is None:
        return None
    if isinstance(value, bool):
        return _T.BOOLEAN
    if isinstance(value, int):
        return _T.LONG
    if isinstance(value, Decimal | float):
        return _T.DOUBLE
    return _T.STRING if isinstance(value, str) else _T.JSON


def bare_text(kind: TypeKind, value: Any) -> str | None:
    """The text of a value without a schema in a column of that type; None if it is of another type."""
    found = bare_type(value)
    if kind is _T.DOUBLE and found in (_T.LONG, _T.DOUBLE):
        return _floating(value)
    if kind is _T.JSON or (kind is _T.STRING and found is not _T.STRING):
        return _json(value)
    if found is not kind:
        return None
    return {_T.BOOLEAN: _truth, _T.LONG: _whole, _T.STRING: _text}[kind](value)
