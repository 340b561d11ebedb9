"""The columns of a table from the schema in its log."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tidemark.channels.model.columns import Column, ColumnType, Kind
from tidemark.model.foreign_json import parsed

__all__ = ["ColumnRefused", "columns_of", "schema_of"]

_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)")
_TEXT = re.compile(r"(?:char|varchar)\((\d+)\)", re.IGNORECASE)
_GEO = re.compile(r"(geography|geometry)\b.*", re.IGNORECASE)
_TEXT_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_MAPPING = "delta.columnMapping."
_REFUSED = {
    "delta.identity.start": "is an identity column",
    "delta.generationExpression": "is a generated column",
    "delta.invariants": "has an invariant",
    "__COLLATIONS": "has a collation",  # Spark's: of the field, its elements, keys or values; the type is plain STRING
}


class ColumnRefused(ValueError):
    """The reason why a channel cannot write a column."""


def columns_of(schema_json: str) -> tuple[Column, ...]:
    """The columns in order. Raises ColumnRefused for the first that no channel can write."""
    return tuple(_column(form, "") for form in parsed(schema_json)["fields"])


def schema_of(columns: Mapping[str, str]) -> str:
    """The schema of a table with these columns, name → type, in Delta's form. All may be NULL."""
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return json.dumps({"type": "struct", "fields": fields})


def _column(form: Mapping[str, Any], above: str) -> Column:
    path = f"{above}{form['name']}"
    more = form.get("metadata", {})
    for name, problem in _REFUSED.items():
        if name in more:
            raise ColumnRefused(f"column {path} {problem}")
    field_id = more.get(_MAPPING + "id")
    return Column(
        name=form["name"],
        type=_type(form["type"], path, _length(more, path)),
        nullable=form["nullable"],
        physical=more.get(_MAPPING + "physicalName", form["name"]),
        field_id=field_id if type(field_id) is int else None,
        default=more.get("CURRENT_DEFAULT"),
    )


def _type(form: Any, path: str, length: int | None = None) -> ColumnType:
    if isinstance(form, str):
        return _plain(form, path, length)
    if form["type"] == "struct":
        return ColumnType(Kind.STRUCT, fields=tuple(_column(field, f"{path}.") for field in form["fields"]))
    if form["type"] == "array":
        element = _type(form["elementType"], f"{path}.element")
        return ColumnType(Kind.ARRAY, element=element, nullable_elements=form["containsNull"])
    if form["type"] == "map":
        key, element = _type(form["keyType"], f"{path}.key"), _type(form["valueType"], f"{path}.value")
        return ColumnType(Kind.MAP, key=key, element=element, nullable_elements=form["valueContainsNull"])
    raise ColumnRefused(f"column {path} has a user-defined type")


def _plain(form: str, path: str, length: int | None) -> ColumnType:
    if found := _DECIMAL.fullmatch(form):
        return ColumnType(Kind.DECIMAL, precision=int(found[1]), scale=int(found[2]))
    if form == "string":
        return ColumnType(Kind.STRING, length=length)
    if form.startswith("string"):
        raise ColumnRefused(f"column {path} has a collation")
    if found := _GEO.fullmatch(form):
        raise ColumnRefused(f"column {path} is of type {found[1].upper()}")
    try:
        return ColumnType(Kind(form))
    except ValueError:
        raise ColumnRefused(f"column {path} is of type {form}") from None


def _length(more: Mapping[str, Any], path: str) -> int | None:
    """The length of a CHAR or VARCHAR. Spark keeps one inside another type with the outermost column."""
    if _TEXT_TYPE not in more:
        return None
    found = _TEXT.fullmatch(str(more[_TEXT_TYPE]))
    if found is None:
        raise ColumnRefused(f"column {path} has a CHAR or VARCHAR inside an ARRAY, a MAP or a STRUCT")
    return int(found[1])
