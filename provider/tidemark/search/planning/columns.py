"""Columns of a table that can be searched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidemark.model.foreign_json import parsed
from tidemark.model.table_log import Metadata
from tidemark.search.model.paths import SearchColumn, ValueKind

__all__ = ["NotSearched", "column_named", "column_now", "column_of", "equality_columns", "is_column"]

_PHYSICAL = "delta.columnMapping.physicalName"
_CHAR = re.compile(r"(?<!var)char\(")
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
_COLLATED = "__COLLATIONS"
_KINDS = {
    **dict.fromkeys(("byte", "short", "integer", "long"), ValueKind.WHOLE),
    "string": ValueKind.TEXT,
    "binary": ValueKind.BINARY,
    "date": ValueKind.DATE,
    "timestamp": ValueKind.TIMESTAMP,
}
_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)")
_DIGITS_BEFORE, _DIGITS_BEHIND = 20, 18  # of decimals that are hashed


class NotSearched(ValueError):
    """The reason why a column is not searched."""


def column_named(metadata: Metadata, parts: Sequence[str]) -> SearchColumn | None:
    """The column, or field of a struct, of these names in any case; None if none, or more than one, is searched."""
    try:
        return column_of(metadata, parts)
    except NotSearched:
        return None


def column_of(metadata: Metadata, parts: Sequence[str]) -> SearchColumn:
    """The same. Raises NotSearched with the reason."""
    kind: Any = parsed(metadata.schema_json)
    names: list[str] = []
    physical: list[str] = []
    said: Mapping[str, Any] = {}
    for part in parts:
        fields = kind["fields"] if isinstance(kind, dict) and kind.get("type") == "struct" else []
        same = [field for field in fields if str(field["name"]).lower() == part.lower()]
        if len(same) != 1:
            raise NotSearched(f"{'.'.join(parts)} is not a column")
        (field,) = same
        said = said if _PADDED in said or _COLLATED in said else field.get("metadata", {})
        names.append(str(field["name"]))
        physical.append(str(field.get("metadata", {}).get(_PHYSICAL, field["name"])))
        kind = field["type"]
    return _column(names, physical, kind, said)


def is_column(metadata: Metadata, parts: Sequence[str]) -> bool:
    """Whether the table has a column, or a field of a struct, of these names in any case, searched or not."""
    kinds: list[Any] = [parsed(metadata.schema_json)]
    for part in parts:
        structs = (kind for kind in kinds if isinstance(kind, dict) and kind.get("type") == "struct")
        fields = (field for struct in structs for field in struct["fields"])
        kinds = [field["type"] for field in fields if str(field["name"]).lower() == part.lower()]
    return bool(kinds)


def column_now(metadata: Metadata, column: SearchColumn) -> SearchColumn | None:
    """The same column under its present name; None if it is gone, or has values of another kind."""
    names: list[str] = []
    kind: Any = parsed(metadata.schema_json)
    for physical in column.physical:
        fields = kind["fields"] if isinstance(kind, dict) and kind.get("type") == "struct" else []
        field = next((one for one in fields if one.get("metadata", {}).get(_PHYSICAL, one["name"]) == physical), None)
        if field is None:
            return None
        names.append(str(field["name"]))
        kind = field["type"]
    found = column_named(metadata, names)
    same = found is not None and (found.kind, found.is_array) == (column.kind, column.is_array)
    return found if same else None


def equality_columns(metadata: Metadata) -> tuple[SearchColumn, ...]:
    """All columns, without fields of structs, that an equality search can have."""
    names = (str(field["name"]) for field in parsed(metadata.schema_json)["fields"])
    found = (column_named(metadata, [name]) for name in names)
    return tuple(column for column in found if column is not None)


def _column(names: Sequence[str], physical: Sequence[str], kind: Any, said: Mapping[str, Any]) -> SearchColumn:
    name = ".".join(names)
    is_array = isinstance(kind, dict) and kind.get("type") == "array"
    value = kind["elementType"] if is_array else kind
    against = next(_problems(value, said), None)
    if against is not None:
        raise NotSearched(f"{name} is of the type {_written(kind)}: {against}")
    return SearchColumn(tuple(names), tuple(physical), _kind_of(value), _written(kind), is_array)


def _problems(kind: Any, said: Mapping[str, Any]) -> Iterator[str]:
    if _CHAR.search(str(said.get(_PADDED, ""))):
        yield "Spark pads CHAR values with blanks"
    if said.get(_COLLATED):
        yield "its collation makes different texts equal"
    if not isinstance(kind, str):
        yield "name a field of the struct, or a column of another type"
    elif kind in ("float", "double"):
        yield "equal numbers with a floating point have several forms"
    elif kind not in _KINDS and not _fits(kind):
        yield "values of this type are not hashed"


def _fits(kind: str) -> bool:
    found = _DECIMAL.fullmatch(kind)
    return found is not None and int(found[2]) <= _DIGITS_BEHIND and int(found[1]) - int(found[2]) <= _DIGITS_BEFORE


def _kind_of(kind: str) -> ValueKind:
    return _KINDS.get(kind, ValueKind.DECIMAL)


def _written(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    return f"array<{_written(kind['elementType'])}>" if kind.get("type") == "array" else str(kind.get("type"))
