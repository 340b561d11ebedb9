"""Views as Spark's catalog has them, and the query that a stream on a view reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["BASE", "KEPT", "KEPT_ROW_ID", "StoredTable", "StoredView", "ViewColumn", "ViewQuery"]

BASE = "tidemark_base_"  # the name of the n-th base table in the text of a ViewQuery ends with its number
KEPT = "tidemark_kept"  # the name of the table of a kept query in the texts that read it
KEPT_ROW_ID = "_row_id"  # a column of tables of kept rows: METADATA$ROW_ID of the query's row (string)


@dataclass(frozen=True)
class ViewColumn:
    """A column of a view: its name, its name in the view's query, and its SQL type (None: that of the query)."""

    name: str
    source: str
    kind: str | None = None


@dataclass(frozen=True)
class StoredView:
    """A view in the catalog. Its text has the meaning that it has in `namespace` (catalog first) under `settings`."""

    name: str
    text: str
    namespace: tuple[str, ...]
    columns: tuple[ViewColumn, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredTable:
    """A table, or another object that is no view, named in a view. `kind`: the kind of an object that is no table."""

    name: str
    kind: str | None = None


@dataclass(frozen=True)
class ViewQuery:
    """The query of a view, expanded down to base tables.

    `bases`: the tables in the order in which the text first names them, each once; `text` names the n-th BASE and n.
    `schema_json`: the view's schema; `text` has columns of its names in its order. `settings`: Spark's SQL settings
    under which the text has the view's meaning; None means the default. `digest`: of the stored texts of the view and
    of all views in it, which is its identity (R83). `views`: the catalogs' views in a query that is no
    view itself, each with the digest of its own text. None: it is a view.
    """

    name: str
    text: str
    schema_json: str
    bases: tuple[str, ...]
    settings: Mapping[str, str | None]
    digest: str
    views: Mapping[str, str] | None = None
