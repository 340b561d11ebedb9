"""Views: what Spark's catalog keeps of them, and the query that a stream on one reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["BASE", "StoredTable", "StoredView", "ViewColumn", "ViewQuery"]

BASE = "tidemark_base_"  # the name of the n-th base table in the text of a ViewQuery ends with its number


@dataclass(frozen=True)
class ViewColumn:
    """A column of a view: its name, the name that the view's query has for it, and its SQL type (None: as it comes)."""

    name: str
    source: str
    kind: str | None = None


@dataclass(frozen=True)
class StoredView:
    """A view as the catalog keeps it: its text means what it meant in `namespace` (catalog first) under `settings`."""

    name: str
    text: str
    namespace: tuple[str, ...]
    columns: tuple[ViewColumn, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredTable:
    """What a name in a view leads to, if not to a view. `kind` says what else than a table it is."""

    name: str
    kind: str | None = None


@dataclass(frozen=True)
class ViewQuery:
    """The query of a view, expanded down to base tables.

    `bases` are the tables in the order in which the text first names them, each once; in `text` the n-th is called
    BASE and n. `schema_json` is the view's schema, and `text` gives columns of its names in its order. `settings` are
    what Spark's SQL settings must be for the text to mean what the view means; a setting of None is to be at its
    default. `digest` is that of the stored texts of the view and all views in it, and thereby its identity (R83).
    """

    name: str
    text: str
    schema_json: str
    bases: tuple[str, ...]
    settings: Mapping[str, str | None]
    digest: str
