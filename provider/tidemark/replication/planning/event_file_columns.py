"""The columns of a table as event files show them: by the schema of Avro, or by values of JSON alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from tidemark.replication.model.replication import Column, TableSchema, TypeKind, UnifiedType
from tidemark.replication.planning.event_file_schemas import SOURCE_NAME
from tidemark.replication.planning.unified_values import JsonNumber

__all__ = ["bare_columns", "columns_of_header", "require_header", "with_keys"]

_T = TypeKind
_WHOLE = re.compile(r"-?[0-9]+")
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_NEEDED = ("read_method", "uuid", "source_metadata", "payload")
_PLAIN = {
    "boolean": _T.BOOLEAN,
    "int": _T.INTEGER,
    "long": _T.LONG,
    "float": _T.FLOAT,
    "double": _T.DOUBLE,
    "string": _T.STRING,
    "bytes": _T.BYTES,
}
_LOGICAL = {
    "date": _T.DATE,
    "timestamp-millis": _T.TIMESTAMP,
    "timestamp-micros": _T.TIMESTAMP,
    "local-timestamp-millis": _T.DATETIME,
    "local-timestamp-micros": _T.DATETIME,
    "time-millis": _T.STRING,
    "time-micros": _T.STRING,
    "json": _T.JSON,
    "number": _T.DECIMAL,
}
_RECORDS = {("date", "time"): _T.DATETIME, ("offset", "timestamp"): _T.TIMESTAMP}
_NATIVE = {_T.SMALLINT: "smallint", _T.INTEGER: "integer", _T.LONG: "bigint", _T.STRING: "text"}


def require_header(schema: Any) -> None:
    """That a schema of Avro is of events. Raises ValueError."""
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    names = {one.get("name") for one in fields or () if isinstance(one, Mapping)}
    if lacking := [name for name in _NEEDED if name not in names]:
        name = schema.get("name") if isinstance(schema, Mapping) else schema
        raise ValueError(f"its schema {name} has no {', '.join(lacking)}")


def columns_of_header(schema: Mapping[str, Any], numeric_as: str | None = None) -> tuple[Column, ...]:
    """The columns of the payload, none of them a key. `numeric_as`: as in ReplicationOptions. Raises ValueError."""
    payload = next((_record(one["type"]) for one in schema["fields"] if one["name"] == "payload"), {})
    found, records = [], dict[str, Mapping[str, Any]]()
    for field in payload.get("fields", ()):
        kind = _type_of(field["type"], records, numeric_as)
        found.append(Column(field.get(SOURCE_NAME, field["name"]), kind, _native(kind)))
    return tuple(found)


def with_keys(columns: tuple[Column, ...], keys: Collection[str]) -> tuple[Column, ...]:
    """The columns, with those that are the key. Raises ValueError for a key that is no column."""
    if missing := sorted(set(keys) - {one.name for one in columns}):
        raise ValueError(f"its key has a column {missing[0]}, and its payload has none of that name")
    return tuple(one if one.key is (one.name in keys) else replace(one, key=one.name in keys) for one in columns)


def bare_columns(payload: Mapping[str, Any], known: TableSchema | None) -> tuple[Column, ...]:
    """The columns by the values of a JSON line, parsed with JsonNumber. A column keeps its known type while its values
    fit, and is kept if the line does not have it. A column that was always null is left out: it has no type.
    """
    before = {} if known is None else {one.name: one.type.kind for one in known.columns}
    found = dict(before)
    for name, value in payload.items():
        kind = _bare_kind(value)
        if kind is not None:
            found[name] = kind if name not in found else _common(found[name], kind)
    return tuple(Column(name, UnifiedType(kind), _native(UnifiedType(kind))) for name, kind in found.items())


def _bare_kind(value: Any) -> TypeKind | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return _T.BOOLEAN
    if not isinstance(value, JsonNumber):
        return _T.STRING
    if not _WHOLE.fullmatch(value):
        return _T.DOUBLE
    return _T.LONG if len(value) < 25 and _LEAST <= int(value) <= _MOST else _T.STRING


def _common(known: TypeKind, kind: TypeKind) -> TypeKind:
    """The type that holds values of both."""
    if known is kind or (known is _T.DOUBLE and kind is _T.LONG):
        return known
    return _T.DOUBLE if (known, kind) == (_T.LONG, _T.DOUBLE) else _T.STRING


def _type_of(said: Any, records: dict[str, Mapping[str, Any]], numeric_as: str | None) -> UnifiedType:
    branches = [one for one in (said if isinstance(said, list) else [said]) if one != "null"]
    if len(branches) != 1:
        return UnifiedType(_T.STRING)
    (one,) = branches
    if isinstance(one, str):
        one = records.get(one, {"type": one})
    if one["type"] == "record":
        records[str(one["name"])] = one
        fields = tuple(sorted(field["name"] for field in one["fields"]))
        return UnifiedType(_RECORDS.get(fields, _T.JSON))
    if isinstance(one["type"], Mapping):
        return _type_of(one["type"], records, numeric_as)
    logical = one.get("logicalType")
    if logical == "decimal":
        return UnifiedType(_T.DECIMAL, int(one["precision"]), int(one.get("scale") or 0))
    if logical == "number":
        return _numeric(numeric_as)
    if one["type"] in ("array", "map"):
        return UnifiedType(_T.JSON)
    return UnifiedType(_LOGICAL.get(logical) or _PLAIN.get(one["type"], _T.STRING))


def _numeric(numeric_as: str | None) -> UnifiedType:
    """A number without a precision."""
    if numeric_as in (None, "string"):
        return UnifiedType(_T.DECIMAL)
    precision, scale = (int(part) for part in str(numeric_as).strip().lower()[len("decimal(") : -1].split(","))
    return UnifiedType(_T.DECIMAL, precision, scale)


def _native(kind: UnifiedType) -> str:
    if kind.kind is _T.DECIMAL:
        return "numeric" if kind.precision is None else f"numeric({kind.precision},{kind.scale})"
    return _NATIVE.get(kind.kind, kind.kind.value)


def _record(said: Any) -> Mapping[str, Any]:
    for one in said if isinstance(said, list) else [said]:
        if isinstance(one, Mapping):
            return one
    return {}
