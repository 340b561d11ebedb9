"""Tables that only the catalog of the Spark connection knows: asked by a job, and kept in the store with their path."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.lake.moved import Finder
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import Addressing, TableRef
from tidemark.sql.table_names import table_name
from tidemark.streams.model.table_jobs import FIND_TABLE, CatalogRequest
from tidemark.streams.worker.runtime import Runtime

__all__ = ["asking_the_catalog", "in_the_catalog"]


def asking_the_catalog(
    find: Callable[[str], TableRef], runtime: Callable[[], Runtime], *, key: TransactionKey | None = None
) -> Callable[[str], TableRef]:
    """`find`, which knows paths and the lake, and for a name that only a catalog knows a job.

    `runtime` is asked only then, so that no other name needs a Spark. Raises TableNotFound, NotADeltaTable, and what
    `find` and the job raise.
    """

    def found(name: str) -> TableRef:
        meant = table_name(name)
        if not meant.only_in_catalog:
            return find(name)
        (table,) = runtime().run_job(FIND_TABLE, CatalogRequest(meant.text), key=key).tables
        return table

    return found


def in_the_catalog(runtime: Runtime) -> Finder:
    """Asks the catalog, by one job for each table, where a table is that had its name there."""
    known: dict[TableRef, tuple[TableRef, ...]] = {}

    def found(table: TableRef) -> tuple[TableRef, ...]:
        if table.addressing is not Addressing.CATALOG:
            return ()
        if table not in known:
            asked = CatalogRequest(table.name, table.table_id)
            known[table] = runtime.run_job(FIND_TABLE, asked, key=None).tables
        return known[table]

    return found
