"""How files of an earlier schema are read under a later one: column by column, by physical name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.model.table_log import Metadata

__all__ = ["Field", "fields", "first_difference", "partition_columns", "partition_values"]

_PHYSICAL = "delta.columnMapping.physicalName"


@dataclass(frozen=True)
class Field:
    """A top-level column: its name, the name that files have for it, and its JSON form in `schemaString`."""

    name: str
    physical: str
    form: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Identity of the column over versions; Delta ignores the case of names."""
        return self.physical.lower()


def fields(metadata: Metadata) -> tuple[Field, ...]:
    """The columns of a table, in order."""
    return tuple(Field(form["name"], _physical(form), form) for form in json.loads(metadata.schema_json)["fields"])


def first_difference(old: Metadata, new: Metadata) -> str | None:
    """Why files written under `old` cannot be read under `new`; None if they can.

    Columns may be added (R100: they read as NULL), renamed (R101) and dropped (R102); the type of one that both have
    must be the same, nested fields included. Nullability and comments do not matter.
    """
    before = {field.key: field for field in fields(old)}
    for field in fields(new):
        if field.key in before:
            problem = next(_differences(before[field.key].form["type"], field.form["type"], field.name), None)
            if problem:
                return problem
    return None


def partition_columns(old: Metadata, new: Metadata) -> tuple[str, ...]:
    """The partition columns of `old` that `new` still has, by the physical names of `new`."""
    logical = {field.name: field.key for field in fields(old)}
    physical = {field.key: field.physical for field in fields(new)}
    keys = [logical[name] for name in old.partition_columns]
    return tuple(physical[key] for key in keys if key in physical)


def partition_values(values: Mapping[str, str | None], columns: tuple[str, ...]) -> dict[str, str | None]:
    """The values of `columns` (physical names), whatever case the log writes their names in."""
    by_key = {name.lower(): value for name, value in values.items()}
    return {column: by_key.get(column.lower()) for column in columns}


def _physical(form: Mapping[str, Any]) -> str:
    name: str = form.get("metadata", {}).get(_PHYSICAL, form["name"])
    return name


def _differences(old: Any, new: Any, place: str) -> Iterator[str]:
    kinds = [form["type"] if isinstance(form, Mapping) else form for form in (old, new)]
    if kinds[0] != kinds[1]:
        yield f"column {place!r} was of type {kinds[0]} and is now of type {kinds[1]}"
    elif kinds[0] == "struct":
        before = {_physical(form).lower(): form for form in old["fields"]}
        for form in new["fields"]:
            known = before.get(_physical(form).lower())
            if known is not None:
                yield from _differences(known["type"], form["type"], f"{place}.{form['name']}")
    elif kinds[0] == "array":
        yield from _differences(old["elementType"], new["elementType"], f"{place}[]")
    elif kinds[0] == "map":
        yield from _differences(old["keyType"], new["keyType"], f"{place}.key")
        yield from _differences(old["valueType"], new["valueType"], f"{place}.value")
