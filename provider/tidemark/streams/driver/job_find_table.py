"""The FIND_TABLE job: only Spark's catalog knows which table has a name."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.model.streams import Addressing, TableRef
from tidemark.streams.driver.catalog_tables import named_table, same_table
from tidemark.streams.model.table_jobs import CatalogRequest, CatalogTables

__all__ = ["find_table"]


def find_table(job: JobContext, request: CatalogRequest) -> CatalogTables:
    """Without a table id raises TableNotFound, NotADeltaTable; with one, no table is an answer, too."""
    if request.table_id is None:
        return CatalogTables((named_table(job.session, request.name, job.options),))
    table = TableRef(request.name, "", request.table_id, Addressing.CATALOG)
    return CatalogTables(same_table(job.session, table, job.options))
