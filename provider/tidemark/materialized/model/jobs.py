"""The job that resolves a query, decides on the shape in which it is kept, and creates its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemark.materialized.model.definitions import FloatSums, KeptKind
from tidemark.materialized.model.shapes import KeptShape
from tidemark.model.jobs import Job
from tidemark.model.streams import TableRef
from tidemark.model.views import StoredView

__all__ = ["RESOLVE_QUERY", "KeptTable", "ResolveRequest", "Resolved"]


@dataclass(frozen=True)
class KeptTable:
    """The table to create for the rows of a query. For partial aggregates its name and path get `__partials`.

    `cluster_by`: columns of the query; partial aggregates are clustered by their groups. `properties`: of the Delta
    table, beside our own. `replace`: a table of other columns is emptied and gets those of the query.
    """

    name: str
    path: str
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False


@dataclass(frozen=True)
class ResolveRequest:
    """The query `text` of the view `name`, in Spark's SQL.

    `tables`: each name in the text, as `parse_statement` spells it, that means a table below the lake root → its URI.
    `views`: each name that means a kept query (see `planning.reading`). `files`: each name that means an external table
    → the URI of its list of files. All other names are those of Spark's catalogs,
    in the namespace of the session. `kept`: the table to create; None for none.
    `columns`: names for the columns of the text, in its order; empty: their own.
    """

    name: str
    text: str
    kind: KeptKind
    tables: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, StoredView] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    float_sums: FloatSums = FloatSums.RECOMPUTED
    kept: KeptTable | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resolved:
    """The shape of a query, the base tables of `shape.followed` in its order, and the table that was created."""

    shape: KeptShape
    bases: tuple[TableRef, ...]
    columns: tuple[str, ...]
    kept: TableRef | None = None


RESOLVE_QUERY = Job("resolve_query", ResolveRequest, Resolved, "materialized.driver.job_resolve_query:resolve_query")
