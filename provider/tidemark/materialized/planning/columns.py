"""Columns of base tables that a query names, and their changes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from tidemark.model.foreign_json import foreign_object
from tidemark.model.views import ViewQuery

__all__ = ["changed_column", "columns_read", "has_star"]

_MAPPED, _OF_TYPE = '{"physical": ', ', "type": '
_NAME = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


def columns_read(query: ViewQuery, schema_json: str) -> dict[str, str]:
    """The columns of a base that the text of the query may mean → JSON of their types. A table that maps names adds the
    names in files. A name counts in every place of the text, so a column may be counted that the query reads of another
    base. Names of the result count, too, since a star in the text of a PLAIN query means them.
    """
    result = foreign_object(query.schema_json)["fields"]
    named = {(quoted.replace("``", "`") or plain).casefold() for quoted, plain in _NAME.findall(query.text)}
    named |= {one["name"].casefold() for one in result}
    fields = foreign_object(schema_json)["fields"]
    return {one["name"]: _identity(one) for one in fields if one["name"].casefold() in named}


def has_star(query: exp.Query) -> bool:
    """Whether the query or a part of it selects all columns of a table. The table may get more of them later."""
    return any(item.is_star for block in query.find_all(exp.Select) for item in block.expressions)


def changed_column(before: Mapping[str, str], schema_json: str) -> str | None:
    """The first of these columns that is gone, has another type or is another column, in words; None if all are
    unchanged. Columns of tables without a mapping, and those that an earlier release has noted, have their type.
    """
    now = {one["name"].casefold(): one for one in foreign_object(schema_json)["fields"]}
    for name, noted in before.items():
        found = now.get(name.casefold())
        if found is None:
            return f"its column {name} is gone"
        if noted in (_identity(found), _type(found)):
            continue
        if _noted_type(noted) == _type(found):
            return f"its column {name} was dropped or renamed, and another one has its name"
        return f"its column {name} has the type {_words(_type(found))}, and had {_words(_noted_type(noted))}"
    return None


def _words(kind: str) -> str:
    return kind.strip('"')


def _identity(field: Mapping[str, Any]) -> str:
    """The type, with the name in files if the table maps names: another column may get the same name."""
    physical, kind = field["metadata"].get("delta.columnMapping.physicalName"), _type(field)
    return kind if physical is None else f"{_MAPPED}{json.dumps(physical)}{_OF_TYPE}{kind}}}"


def _noted_type(noted: str) -> str:
    return noted.partition(_OF_TYPE)[2].removesuffix("}") if noted.startswith(_MAPPED) else noted


def _type(field: Mapping[str, object]) -> str:
    return json.dumps(_plain(field["type"]), sort_keys=True)


def _plain(kind: object) -> object:
    """The type without comments and other properties of nested fields."""
    if isinstance(kind, dict):
        return {name: _plain(value) for name, value in kind.items() if name not in ("metadata", "nullable")}
    return [_plain(one) for one in kind] if isinstance(kind, list) else kind
