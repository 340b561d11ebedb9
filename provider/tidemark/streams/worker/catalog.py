"""Tables and views that only the catalog of the Spark connection knows: asked by a job, and stored with their path."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.control.store import ControlStore
from tidemark.errors import CatalogTableMoved, SourceError
from tidemark.lake.moved import Finder
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import Addressing, StreamMode, TableRef
from tidemark.sql.table_names import in_catalogs, table_name
from tidemark.streams.model.sources import Source, table_source, view_source
from tidemark.streams.model.table_jobs import FIND_TABLE, RESOLVE_VIEW, CatalogRequest, ViewRequest
from tidemark.streams.store import catalog_tables, transactions
from tidemark.streams.worker.defining import StreamRequest
from tidemark.streams.worker.opening import Tables
from tidemark.streams.worker.runtime import Runtime

__all__ = [
    "asking_the_catalog",
    "finding_sources",
    "forget_moved",
    "in_the_catalog",
    "is_at_its_path",
    "known_to_the_store",
    "once_in_the_catalog",
    "planned_paths",
]


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


def once_in_the_catalog(
    store: ControlStore,
    find: Callable[[str], TableRef],
    runtime: Callable[[], Runtime],
    *,
    connection: str,
    tables: Tables,
    key: TransactionKey | None = None,
    anew: bool = False,
) -> Callable[[str], TableRef]:
    """As `asking_the_catalog`, with a job only once for a name. The store keeps the table for the Airflow `connection`,
    and it counts while it is at its path. `anew`: a job is asked in any case, for those that do not check the name.
    """
    asked = asking_the_catalog(find, runtime, key=key)

    def found(name: str) -> TableRef:
        meant = table_name(name)
        if not meant.only_in_catalog:
            return find(name)
        known = None if anew else known_to_the_store(store, connection, meant.text)
        if known is not None and is_at_its_path(known, tables):
            return known
        table = asked(name)
        store.write(lambda c: catalog_tables.keep(c, connection, table, at=store.clock()))
        return table

    return found


def known_to_the_store(store: ControlStore, connection: str, name: str) -> TableRef | None:
    """The table of a catalog as it was found last with that Airflow connection, or None."""
    return store.read(lambda c: catalog_tables.lookup(c, connection, name))


def planned_paths(store: ControlStore, key: TransactionKey) -> dict[str, str]:
    """Name → URI of the tables of catalogs in the plan of that key: a retry means the same ones. Without a plan {}."""
    stored = store.read(lambda c: transactions.current(c, key))
    if stored is None:
        return {}
    paths: dict[str, str] = {}
    for statement in stored.transaction.plan.statements:
        paths |= in_catalogs(statement.write.tables)
    return paths


def forget_moved(store: ControlStore, error: BaseException) -> None:
    """If the error is CatalogTableMoved, the next attempt asks the catalog. A second time changes nothing."""
    if isinstance(error, CatalogTableMoved):
        store.write(lambda c: catalog_tables.forget(c, error.facts["name"], path=error.facts["path"]))


def is_at_its_path(table: TableRef, tables: Tables) -> bool:
    """Whether the table's path still has that table."""
    try:
        return tables(table.path).state().table_id == table.table_id
    except SourceError:
        return False


def finding_sources(
    table: Callable[[str], TableRef],
    external_table: Callable[[str], TableRef],
    runtime: Callable[[], Runtime],
    *,
    key: TransactionKey | None = None,
) -> Callable[[StreamRequest], Source]:
    """The sources of streams, for `Sources.find`. `table` knows paths and the lake. A job asks the catalog for a view,
    and for a table that only it knows. Raises what `asking_the_catalog` and the jobs raise.
    """
    by_name = asking_the_catalog(table, runtime, key=key)

    def found(request: StreamRequest) -> Source:
        if request.on_view:
            view = runtime().run_job(RESOLVE_VIEW, ViewRequest(request.on, request.beyond_snowflake), key=key)
            return view_source(request.on, view.query, view.bases)
        return table_source((external_table if request.mode is StreamMode.INSERT_ONLY else by_name)(request.on))

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
