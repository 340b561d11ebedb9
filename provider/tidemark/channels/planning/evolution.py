"""Changes of a table's schema that rows ask for: new columns that may be NULL, and NOT NULL that goes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemark.model.foreign_json import parsed

__all__ = ["MOST_NEW_COLUMNS", "Evolution", "evolved_schema"]

MOST_NEW_COLUMNS = 100
"""In one batch. More are a mistake, such as names that are values."""


@dataclass(frozen=True)
class Evolution:
    """`new`: name → type in Delta's form, of columns that the table lacks. `nullable`: names of columns, without
    case.
    """

    new: Mapping[str, Any] = field(default_factory=dict)
    nullable: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.new or self.nullable)


def evolved_schema(schema_json: str, evolution: Evolution) -> str:
    """The schema afterwards, in Delta's form. It is the same text if it has all of that already."""
    schema = parsed(schema_json)
    known = {form["name"].upper() for form in schema["fields"]}
    relaxed = {name.upper() for name in evolution.nullable}
    changed = False
    for form in schema["fields"]:
        if form["name"].upper() in relaxed and not form["nullable"]:
            form["nullable"], changed = True, True
    for name, kind in evolution.new.items():
        if name.upper() not in known:
            schema["fields"].append({"name": name, "type": kind, "nullable": True, "metadata": {}})
            known.add(name.upper())
            changed = True
    return json.dumps(schema, ensure_ascii=False) if changed else schema_json
