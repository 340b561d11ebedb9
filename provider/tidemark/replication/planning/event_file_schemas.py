"""The Avro schema of an event file: Datastream's fields, and the object's columns as a typed record."""

from __future__ import annotations

import re
from typing import Any

from tidemark.replication.model.replication import TableSchema, TypeKind, UnifiedType
from tidemark.replication.planning.types import decimal_of

__all__ = ["EXTENSION", "OF_SOURCES", "SOURCE_NAME", "avro_names", "event_schema"]

EXTENSION = "tidemark"
"""The field that Datastream does not have: the event's place in the log, and facts about its row."""

SOURCE_NAME = "sourceName"
"""The property of a field whose column has a name that Avro does not take."""

OF_SOURCES = ("database", "log_file", "log_position", "gtid", "server_id", "connector", "scn", "rs_id", "ssn", "row_id")
"""Fields of `source_metadata` that some kinds of source have, beside the common ones."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_TEXTS = {"type": "array", "items": "string"}
_OPTIONAL = ["null", "string"]
_PLACE = ["null", "string", "long"]
_MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
_DATE = {"type": "int", "logicalType": "date"}
_PRIMITIVES: dict[TypeKind, Any] = {
    TypeKind.BOOLEAN: "boolean",
    TypeKind.SMALLINT: "int",
    TypeKind.INTEGER: "int",
    TypeKind.LONG: "long",
    TypeKind.FLOAT: "float",
    TypeKind.DOUBLE: "double",
    TypeKind.STRING: "string",
    TypeKind.BYTES: "bytes",
    TypeKind.DATE: _DATE,
    TypeKind.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
    TypeKind.JSON: {"type": "string", "logicalType": "json"},
    TypeKind.ARRAY: {"type": "string", "logicalType": "json"},
}
_DATETIME = {
    "type": "record",
    "name": "datetime",
    "fields": [
        {"name": "date", "type": _DATE},
        {"name": "time", "type": {"type": "long", "logicalType": "time-micros"}},
    ],
}


def event_schema(schema: TableSchema) -> dict[str, Any]:
    """Of the files whose events have these columns. Each column may be null, as events of a deleted row have only its
    key.
    """
    metadata: list[dict[str, Any]] = [
        {"name": "schema", "type": "string"},
        {"name": "table", "type": "string"},
        {"name": "is_deleted", "type": "boolean"},
        {"name": "change_type", "type": "string"},
        {"name": "tx_id", "type": _OPTIONAL},
        {"name": "lsn", "type": _OPTIONAL},
        {"name": "primary_keys", "type": _TEXTS},
        *({"name": name, "type": _PLACE, "default": None} for name in OF_SOURCES),
    ]
    return {
        "type": "record",
        "name": "event",
        "namespace": "tidemark",
        "fields": [
            *({"name": name, "type": "string"} for name in ("stream_name", "read_method", "object", "schema_key")),
            {"name": "uuid", "type": "string"},
            {"name": "read_timestamp", "type": _MILLIS},
            {"name": "source_timestamp", "type": _MILLIS},
            {"name": "sort_keys", "type": {"type": "array", "items": ["string", "long"]}},
            {"name": "source_metadata", "type": _record("source_metadata", metadata)},
            {"name": "payload", "type": _record("payload", _columns(schema))},
            {"name": EXTENSION, "type": _record(EXTENSION, _extension())},
        ],
    }


def avro_names(schema: TableSchema) -> dict[str, str]:
    """The field of each column. Letters that Avro does not take become `_`, with a number if two would be the same."""
    names: dict[str, str] = {}
    taken = {column.name for column in schema.columns if _plain(column.name) == column.name}
    for column in schema.columns:
        name = plain = _plain(column.name)
        number = 1
        while name != column.name and name in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name)
        names[column.name] = name
    return names


def _plain(name: str) -> str:
    plain = _NOT_IN_NAMES.sub("_", name)
    return f"_{plain}" if plain[:1].isdigit() or not plain else plain


def _columns(schema: TableSchema) -> list[dict[str, Any]]:
    names, fields, known = avro_names(schema), list[dict[str, Any]](), False
    for column in schema.columns:
        kind = _type_of(column.type)
        if kind is _DATETIME and known:
            kind = "datetime"  # a record is defined once
        known = known or kind is _DATETIME
        field: dict[str, Any] = {"name": names[column.name], "type": ["null", kind], "default": None}
        if names[column.name] != column.name:
            field[SOURCE_NAME] = column.name
        fields.append(field)
    return fields


def _type_of(kind: UnifiedType) -> Any:
    if kind.kind is TypeKind.DATETIME:
        return _DATETIME
    if kind.kind is not TypeKind.DECIMAL:
        return _PRIMITIVES[kind.kind]
    digits = decimal_of(kind)
    if digits is None:
        return {"type": "string", "logicalType": "number"}
    return {"type": "bytes", "logicalType": "decimal", "precision": digits[0], "scale": digits[1]}


def _extension() -> list[dict[str, Any]]:
    return [
        {"name": "object_id", "type": "string"},
        {"name": "position", "type": "string"},
        {"name": "sequence", "type": "long"},
        {"name": "batch", "type": "long"},
        {"name": "key", "type": _OPTIONAL},
        {"name": "old_key", "type": _OPTIONAL},
        {"name": "unchanged", "type": ["null", _TEXTS]},
        {"name": "problem", "type": _OPTIONAL},
        {"name": "absent", "type": ["null", _TEXTS]},
        {"name": "invalid", "type": ["null", {"type": "map", "values": "string"}]},
    ]


def _record(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}
