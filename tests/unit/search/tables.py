"""The schema of a table, and files with statistics."""

from __future__ import annotations

import json
from typing import Any

from tidemark.model.table_log import AddFile, Metadata

__all__ = ["METADATA", "file_of"]


def _field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


_STRUCT = {"type": "struct", "fields": [_field("f", "string"), _field("k", "long")]}
_TAGS = {"type": "array", "elementType": "string", "containsNull": True}
_FIELDS = [
    _field("id", "string"),
    _field("n", "integer"),
    _field("d", "date"),
    _field("m", "decimal(12,2)"),
    _field("t", "timestamp"),
    _field("x", "double"),
    _field("padded", "string", __CHAR_VARCHAR_TYPE_STRING="char(5)"),
    _field("short", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(5)"),
    _field("tags", _TAGS),
    _field("s", _STRUCT),
    _field("p", "string"),
]
METADATA = Metadata("table", json.dumps({"type": "struct", "fields": _FIELDS}), ("p",), {})


def file_of(path: str, least: dict[str, Any], greatest: dict[str, Any], *, rows: int = 10, p: str = "a") -> AddFile:
    stats = {"numRecords": rows, "minValues": least, "maxValues": greatest, "nullCount": dict.fromkeys(least, 0)}
    return AddFile(path, 100, {"p": p}, 0, True, json.dumps(stats), None, None, None)
