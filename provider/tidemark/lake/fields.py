"""Fields of an action, with the types of Delta's protocol. Anything else is a ValueError that names the field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from tidemark.model.foreign_json import parsed, plain_text

__all__ = [
    "configuration",
    "optional_text",
    "optional_whole",
    "partition_values",
    "path",
    "said",
    "said_text",
    "schema",
    "text",
    "texts",
    "truth",
    "whole",
]

_LIMIT = 2**63
_NUMBERS = frozenset({"delta.columnMapping.maxColumnId", "delta.inCommitTimestampEnablementVersion"})


def _as_text(value: Any, name: str) -> str:
    """A text that UTF-8 can encode."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {_shown(value)}, not text")
    if not value.isascii():
        value.encode()  # a lone surrogate is a UnicodeEncodeError, which is a ValueError
    return value


def text(body: Mapping[str, Any], name: str) -> str:
    """A required text."""
    return _as_text(_required(body, name), name)


def optional_text(body: Mapping[str, Any], name: str) -> str | None:
    """A text, or None if it is missing."""
    value = body.get(name)
    return None if value is None else _as_text(value, name)


def path(body: Mapping[str, Any], name: str = "path") -> str:
    """A valid percent-encoded path."""
    value = text(body, name)
    if not value or "\0" in unquote(value):
        raise ValueError(f"{name} is {_shown(value)}, which is not a path")
    return value


def whole(body: Mapping[str, Any], name: str, *, least: int = 0) -> int:
    """A required whole number of 64 bits."""
    value = _required(body, name)
    if type(value) is not int or not least <= value < _LIMIT:
        raise ValueError(f"{name} is {_shown(value)}, not a whole number from {least} on")
    return value


def optional_whole(body: Mapping[str, Any], name: str, *, least: int = 0) -> int | None:
    """A whole number, or None if it is missing."""
    return None if body.get(name) is None else whole(body, name, least=least)


def truth(body: Mapping[str, Any], name: str, *, default: bool | None = None) -> bool:
    """True or false; required unless it has a default."""
    value = default if default is not None and body.get(name) is None else _required(body, name)
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {_shown(value)}, neither true nor false")
    return value


def texts(body: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of texts; empty if it is missing."""
    value = body.get(name)
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{name} is {_shown(value)}, not a list")
    return tuple(_as_text(item, name) for item in value or ())


def _entries(value: Any, name: str) -> Iterable[tuple[Any, Any]]:
    """The pairs of a map: an object in JSON, a list of pairs in Parquet."""
    if isinstance(value, dict):
        return value.items()
    if value is None or (isinstance(value, list) and all(isinstance(item, tuple) and len(item) == 2 for item in value)):
        return value or ()
    raise ValueError(f"{name} is {_shown(value)}, not a map")


def configuration(body: Mapping[str, Any], name: str = "configuration") -> dict[str, str]:
    """A map of texts without nulls; empty if it is missing. Values that are read as numbers are valid numbers."""
    entries = ((key, value) for key, value in _entries(body.get(name), name) if value is not None)
    said = {_as_text(key, name): _as_text(value, name) for key, value in entries}
    for key in _NUMBERS & said.keys():
        if re.fullmatch("[0-9]{1,18}", said[key]) is None:
            raise ValueError(f"{key} is {_shown(said[key])}, not a whole number from 0 on")
    return said


def partition_values(body: Mapping[str, Any]) -> dict[str, str | None] | None:
    """Column → value as text, None for NULL; None if the map is missing."""
    name = "partitionValues"
    if body.get(name) is None:
        return None
    return {
        _as_text(key, name): None if value is None else _as_text(value, name)
        for key, value in _entries(body.get(name), name)
    }


def said(body: Mapping[str, Any], name: str) -> dict[str, str]:
    """A commit's facts about its operation, values of any type as text. Empty if they have another form: Delta's
    protocol leaves the form to the writer.
    """
    found = body.get(name)
    return {plain_text(key): _value_text(value) for key, value in found.items()} if isinstance(found, dict) else {}


def said_text(body: Mapping[str, Any], name: str) -> str | None:
    """A text of a commit's own facts; None if it is missing or of another form."""
    found = body.get(name)
    return plain_text(found) if isinstance(found, str) else None


def _value_text(value: Any) -> str:
    """The value as text; a nested value shows only its type."""
    if value is None:
        return "null"
    return plain_text(str(value)) if isinstance(value, str | int | float) else f"<{type(value).__name__}>"


def schema(body: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The `schemaString` and the partition columns. The former must be the JSON of a struct type that has the latter.

    Names of primitive types are not checked.
    """
    value = text(body, "schemaString")
    try:
        kind = parsed(value)
        is_struct = isinstance(kind, dict) and kind.get("type") == "struct"
        if not is_struct or not _is_type(kind):
            raise ValueError(f"schemaString is {_shown(value)}, not a struct type")
    except RecursionError as error:
        raise ValueError("schemaString is nested too deeply") from error
    partition = texts(body, "partitionColumns")
    if not {field["name"] for field in kind["fields"]}.issuperset(partition):
        raise ValueError(f"schemaString lacks one of the partition columns {_shown(', '.join(partition))}")
    return value, partition


_PARTS = {"array": ("elementType",), "map": ("keyType", "valueType"), "struct": (), "udt": ()}
_FLAGS = {"array": ("containsNull",), "map": ("valueContainsNull",)}


def _is_type(kind: Any) -> bool:
    if isinstance(kind, str):
        return True
    if not isinstance(kind, dict) or not isinstance(kind.get("type"), str) or kind["type"] not in _PARTS:
        return False
    if kind["type"] == "struct" and not (isinstance(kind.get("fields"), list) and all(map(_is_field, kind["fields"]))):
        return False
    if not all(isinstance(kind.get(flag), bool) for flag in _FLAGS.get(kind["type"], ())):
        return False
    return all(_is_type(kind.get(part)) for part in _PARTS[kind["type"]])


def _is_field(field: Any) -> bool:
    return (
        isinstance(field, dict)
        and isinstance(field.get("name"), str)
        and isinstance(field.get("nullable"), bool)
        and isinstance(field.get("metadata"), dict)
        and isinstance(field["metadata"].get("delta.columnMapping.physicalName", ""), str)
        and _is_type(field.get("type"))
    )


def _required(body: Mapping[str, Any], name: str) -> Any:
    value = body.get(name)
    if value is None:
        raise ValueError(f"it has no {name}")
    return value


def _shown(value: Any) -> str:
    shown = ascii(value) if isinstance(value, str | bool | float) or value is None else type(value).__name__
    if type(value) is int:
        shown = hex(value) if abs(value) >= _LIMIT else str(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}…"
