"""Reading files of an earlier schema under a later one: column by column, by physical name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tidemark.model.foreign_json import parsed
from tidemark.model.table_log import Metadata

__all__ = ["Field", "atoms", "fields", "first_difference", "mapping_mode", "partition_columns", "partition_values"]

_FEW_SCHEMAS = 64  # cached, since each file of a window needs one
_PHYSICAL = "delta.columnMapping.physicalName"
_DECIMAL = re.compile(r"decimal\((\d+), *(-?\d+)\)")
_WIDER = {  # allowed by Delta's type widening and by all of Spark's Parquet readers, without decimals
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}  # of a decimal before the point that has all values


@dataclass(frozen=True)
class Field:
    """A top-level column: its name, its name in files, and its JSON form in `schemaString`."""

    name: str
    physical: str
    form: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Identity of the column over versions; Delta ignores the case of names."""
        return self.physical.lower()


def fields(metadata: Metadata) -> tuple[Field, ...]:
    """The columns of a table, in order."""
    return _fields(metadata.schema_json)


def first_difference(old: Metadata, new: Metadata) -> str | None:
    """The reason why files of `old` cannot be read under `new`; None if they can.

    Columns may be added (R100: they read as NULL), renamed (R101), dropped (R102) and reordered. The type of a common
    column may be widened (R105: its values are cast up), nested fields included. Nullability and comments do not
    matter. A column that was dropped and added again is another column, which is NULL in old rows. If its type has
    changed, too, files cannot be read. Delta records an overwrite with another type in this way, and its values would
    be lost. They cannot be read either if column mapping was removed, and with it the column names of older files.
    """
    if mapping_mode(old) != "none" and mapping_mode(new) == "none":
        return "column mapping was removed, and with it the column names of older files"
    return _first_difference(old.schema_json, new.schema_json)


def mapping_mode(metadata: Metadata) -> str:
    """The naming of columns in files: `none` (the table's names), `name` (physical names) or `id` (field ids)."""
    return metadata.configuration.get("delta.columnMapping.mode", "none")


def atoms(metadata: Metadata) -> frozenset[str]:
    """The types without parts in all columns."""
    return frozenset(_atoms(parsed(metadata.schema_json)))


def partition_columns(old: Metadata, new: Metadata) -> tuple[str, ...]:
    """The partition columns of `old` that `new` still has, by the physical names of `new`."""
    logical = {field.name: field.key for field in fields(old)}
    physical = {field.key: field.physical for field in fields(new)}
    keys = [logical[name] for name in old.partition_columns]
    return tuple(physical[key] for key in keys if key in physical)


def partition_values(values: Mapping[str, str | None], columns: tuple[str, ...]) -> dict[str, str | None]:
    """The values of `columns` (physical names), ignoring the case of names in the log."""
    by_key = {name.lower(): value for name, value in values.items()}
    return {column: by_key.get(column.lower()) for column in columns}


@lru_cache(_FEW_SCHEMAS)
def _fields(schema: str) -> tuple[Field, ...]:
    return tuple(Field(form["name"], _physical(form), form) for form in parsed(schema)["fields"])


@lru_cache(_FEW_SCHEMAS)
def _first_difference(old: str, new: str) -> str | None:
    return next(_differences(parsed(old), parsed(new), ""), None)


def _physical(form: Mapping[str, Any]) -> str:
    name: str = form.get("metadata", {}).get(_PHYSICAL, form["name"])
    return name


def _atoms(form: Any) -> Iterator[str]:
    if not isinstance(form, Mapping):
        yield str(form)
    elif form["type"] == "struct":
        for field in form["fields"]:
            yield from _atoms(field["type"])
    elif form["type"] == "array":
        yield from _atoms(form["elementType"])
    elif form["type"] == "map":
        yield from _atoms(form["keyType"])
        yield from _atoms(form["valueType"])
    else:
        yield str(form["type"])


def _differences(old: Any, new: Any, path: str, *, may_widen: bool = True) -> Iterator[str]:
    kinds = [form["type"] if isinstance(form, Mapping) else form for form in (old, new)]
    if kinds[0] != kinds[1]:
        if not (may_widen and _is_wider(*kinds)):
            yield f"column {path!r} was of type {kinds[0]} and is now of type {kinds[1]}"
    elif kinds[0] == "struct":
        for known, form in _pairs(old["fields"], new["fields"]):
            same = may_widen and _physical(known).lower() == _physical(form).lower()
            yield from _differences(known["type"], form["type"], f"{path}.{form['name']}".lstrip("."), may_widen=same)
    elif kinds[0] == "array":
        yield from _differences(old["elementType"], new["elementType"], f"{path}[]", may_widen=may_widen)
    elif kinds[0] == "map":
        yield from _differences(old["keyType"], new["keyType"], f"{path}.key", may_widen=may_widen)
        yield from _differences(old["valueType"], new["valueType"], f"{path}.value", may_widen=may_widen)


def _pairs(old: list[Any], new: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Fields of `new` with their counterparts in `old`: by physical name, else by name if that one is missing."""
    by_physical = {_physical(form).lower(): form for form in old}
    gone = by_physical.keys() - {_physical(form).lower() for form in new}
    by_name = {by_physical[key]["name"].lower(): by_physical[key] for key in gone}
    for form in new:
        known = by_physical.get(_physical(form).lower()) or by_name.get(form["name"].lower())
        if known is not None:
            yield known, form


def _is_wider(old: str, new: str) -> bool:
    """Whether every value of `old` is one of `new`, and files with `old` can be read as `new`."""
    if old == "void" or new in _WIDER.get(old, ()):
        return True
    wide, narrow = _DECIMAL.fullmatch(new), _DECIMAL.fullmatch(old)
    if wide is None:
        return False
    scale = int(wide[2])
    before_point = int(wide[1]) - scale
    if narrow is None:
        return old in _DIGITS and scale >= 0 and before_point >= _DIGITS[old]
    return scale >= int(narrow[2]) and before_point >= int(narrow[1]) - int(narrow[2])
