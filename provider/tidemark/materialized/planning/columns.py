"""Columns of base tables that a query names, and their changes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from sqlglot import exp

from tidemark.model.foreign_json import foreign_object
from tidemark.model.views import ViewQuery

__all__ = ["changed_column", "columns_read", "has_star"]

_NAME = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


def columns_read(query: ViewQuery, schema_json: str) -> dict[str, str]:
    """The columns of a base that the text of the query may mean → JSON of their types. A name counts in every place
    of the text, so a column may be counted that the query reads of another base. Names of the result count, too, since
    a star in the text of a PLAIN query means them.
    """
    result = foreign_object(query.schema_json)["fields"]
    named = {(quoted.replace("``", "`") or plain).casefold() for quoted, plain in _NAME.findall(query.text)}
    named |= {one["name"].casefold() for one in result}
    fields = foreign_object(schema_json)["fields"]
    return {one["name"]: _type(one) for one in fields if one["name"].casefold() in named}


def has_star(query: exp.Query) -> bool:
    """Whether the query or a part of it selects all columns of a table. The table may get more of them later."""
    return any(item.is_star for block in query.find_all(exp.Select) for item in block.expressions)


def changed_column(before: Mapping[str, str], schema_json: str) -> str | None:
    """The first of these columns that is gone or has another type, in words; None if all are unchanged."""
    now = {one["name"].casefold(): _type(one) for one in foreign_object(schema_json)["fields"]}
    for name, kind in before.items():
        found = now.get(name.casefold())
        if found is None:
            return f"its column {name} is gone"
        if found != kind:
            return f"its column {name} has the type {_words(found)}, and had {_words(kind)}"
    return None


def _words(kind: str) -> str:
    return kind.strip('"')


def _type(field: Mapping[str, object]) -> str:
    return json.dumps(_plain(field["type"]), sort_keys=True)


def _plain(kind: object) -> object:
    """The type without comments and other properties of nested fields."""
    if isinstance(kind, dict):
        return {name: _plain(value) for name, value in kind.items() if name not in ("metadata", "nullable")}
    return [_plain(one) for one in kind] if isinstance(kind, list) else kind
