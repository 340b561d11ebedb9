"""Jobs about a table or a view that belong to no transaction."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.external_tables import ExternalTableRequest, Refreshed
from tidemark.model.jobs import Job
from tidemark.model.streams import TableRef
from tidemark.model.views import ViewQuery

__all__ = [
    "CREATE_QUARANTINE",
    "FIND_TABLE",
    "PREPARE",
    "REFRESH_EXTERNAL_TABLE",
    "RESOLVE_VIEW",
    "CatalogRequest",
    "CatalogTables",
    "ResolvedView",
    "TablePath",
    "TableVersion",
    "ViewRequest",
]


@dataclass(frozen=True)
class TablePath:
    """A table by its path or URI."""

    path: str


@dataclass(frozen=True)
class TableVersion:
    """The version that a table has after the job."""

    version: int


@dataclass(frozen=True)
class ViewRequest:
    """A view by the name that Spark's catalog has; `beyond_snowflake`: take it further than Snowflake does."""

    view: str
    beyond_snowflake: bool


@dataclass(frozen=True)
class ResolvedView:
    """The view's query, and its base tables in its order."""

    query: ViewQuery
    bases: tuple[TableRef, ...]


@dataclass(frozen=True)
class CatalogRequest:
    """A table by its name in Spark's catalog. `table_id`: that of the table that is sought, which may have another name
    by now; None: the table that has the name.
    """

    name: str
    table_id: str | None = None


@dataclass(frozen=True)
class CatalogTables:
    """The tables that were found, each with its identity."""

    tables: tuple[TableRef, ...]


PREPARE = Job("prepare", TablePath, TableVersion, "streams.driver.job_prepare:prepare")
CREATE_QUARANTINE = Job(
    "create_quarantine", TablePath, TableVersion, "streams.driver.job_create_quarantine:create_quarantine"
)
FIND_TABLE = Job("find_table", CatalogRequest, CatalogTables, "streams.driver.job_find_table:find_table")
RESOLVE_VIEW = Job("resolve_view", ViewRequest, ResolvedView, "streams.driver.job_resolve_view:resolve_view")
REFRESH_EXTERNAL_TABLE = Job(
    "refresh_external_table",
    ExternalTableRequest,
    Refreshed,
    "streams.driver.job_refresh_external_table:refresh_external_table",
)
