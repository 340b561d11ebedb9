"""Kept queries as views: texts that read the kept table, or the query's own base tables."""

from __future__ import annotations

import re

from tidemark.materialized.model.shapes import KEPT, KeptShape
from tidemark.model.foreign_json import parsed
from tidemark.model.views import BASE, StoredView, ViewColumn, ViewQuery
from tidemark.sql.statements import path_name

__all__ = ["as_stored_query", "as_stored_view", "over_kept"]


def over_kept(shape: KeptShape, path: str) -> str:
    """The SELECT of the query's rows from the kept table at `path`: the text of a view in a catalog."""
    return re.sub(rf"\b{KEPT}\b", lambda _: path_name(path), shape.read)


def as_stored_view(name: str, shape: KeptShape, path: str) -> StoredView:
    """The rows of a dynamic table as of its last refresh, for a query that reads it."""
    return _stored(name, over_kept(shape, path), shape.whole)


def as_stored_query(name: str, shape: KeptShape) -> StoredView:
    """A materialized view for a query that reads it: its own query, since it answers for its bases' newest versions."""
    query = shape.whole
    text = re.sub(rf"\b{BASE}(\d+)\b", lambda found: query.bases[int(found[1])], query.text)
    return _stored(name, text, query)


def _stored(name: str, text: str, query: ViewQuery) -> StoredView:
    names = [str(field["name"]) for field in parsed(query.schema_json)["fields"]]
    return StoredView(
        name=name,
        text=text,
        namespace=(),
        columns=tuple(ViewColumn(column, column) for column in names),
        settings={key: value for key, value in query.settings.items() if value is not None},
    )
