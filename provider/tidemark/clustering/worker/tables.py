"""Keys of tables as users set, drop, suspend and resume them, and the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sqlalchemy as sa

from tidemark.clustering.model.jobs import SET_KEY, KeyRequest
from tidemark.clustering.model.tables import ClusteredTable, Goal, Recluster
from tidemark.clustering.planning.keys import key_of, require_key
from tidemark.clustering.store import reclusterings, tables
from tidemark.control.store import ControlStore
from tidemark.errors import ClusteringKeyMissing, TableNotFound
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import TableRef
from tidemark.streams.planning.known_tables import table_known_as
from tidemark.streams.worker.opening import Tables, wherever
from tidemark.streams.worker.runtime import Runtime

__all__ = [
    "MOST_RECLUSTERINGS",
    "drop_key",
    "list_clustered",
    "recluster_history",
    "register_clustered",
    "resume_named",
    "resume_recluster",
    "set_key",
    "suspend_named",
    "suspend_recluster",
    "table_or_registered",
]

MOST_RECLUSTERINGS = 1_000  # of a history
_BY_HAND = "ALTER TABLE … SUSPEND RECLUSTER"


def set_key(
    runtime: Runtime, table: TableRef, columns: Sequence[str], *, key: TransactionKey, by: str, goal: Goal | None = None
) -> ClusteredTable:
    """Let the table be clustered by these columns, and keep it so from now on.

    Only a table with another key starts a job, which rewrites no file. A second run changes nothing. Raises
    ClusteringKeyRefused, TableNotFound.
    """
    state = wherever(runtime.tables)(table).state()
    wanted = require_key(state, columns, table=table.name)
    if key_of(state) != wanted:
        runtime.run_job(SET_KEY, KeyRequest(table, wanted), key=key)
    return register_clustered(runtime.store, runtime.tables, table, by=by, goal=goal)


def drop_key(runtime: Runtime, table: TableRef, *, key: TransactionKey, by: str) -> None:
    """The table has no key from now on, and is not kept clustered. Its files stay. A second run changes nothing. Of a
    table that is gone, or was another one before, the registration ends.
    """
    if _has_key(runtime, table):
        runtime.run_job(SET_KEY, KeyRequest(table, ()), key=key)
    store = runtime.store

    def end(connection: sa.Connection) -> None:
        kept = tables.lookup_table(connection, table.table_id)
        if kept is not None:
            tables.end_table(connection, kept, at=store.clock(), by=by)
        tables.end_earlier(connection, table, at=store.clock(), by=by)

    store.write(end)


def table_or_registered(store: ControlStore, find: Callable[[str], TableRef], name: str, path: str | None) -> TableRef:
    """The table as `find` finds it, or one that is gone, as it was registered at the `path` or under the name. Raises
    what `find` raises.

    `find` comes first, since a key is of a table id: another table may be at the path by now.
    """
    try:
        return find(name)
    except TableNotFound:
        known = table_known_as((one.table for one in list_clustered(store)), name, path)
        if known is None:
            raise
        return known


def register_clustered(
    store: ControlStore, opened: Tables, table: TableRef, *, by: str, goal: Goal | None = None
) -> ClusteredTable:
    """Keep a table clustered that has a key, under bounds of its own if a `goal` is given. A second run changes
    nothing. Raises ClusteringKeyMissing.
    """
    columns = key_of(wherever(opened)(table).state())
    if not columns:
        raise ClusteringKeyMissing(table=table.name)
    new = ClusteredTable(store.new_id(), table, columns, store.clock(), goal or Goal())

    def register(connection: sa.Connection) -> ClusteredTable:
        kept = tables.register_table(connection, new, by=by)
        if goal is None or kept.goal == goal:
            return kept
        tables.set_goal(connection, kept, goal, by=by)
        return tables.lookup_table(connection, table.table_id) or kept

    return store.write(register)


def suspend_recluster(
    store: ControlStore,
    opened: Tables,
    table: TableRef,
    *,
    by: str,
    why: str = "",
    writes: ControlStore | None = None,
) -> ClusteredTable:
    """The table is not reclustered until it is resumed; its key stays. A second run changes nothing. A registered table
    may be gone. `writes`: the store of writes that change something. Raises ClusteringKeyMissing.
    """
    _register_unless_gone(store, opened, table, by=by, writes=writes or store)
    return (writes or store).write(lambda c: _moved(c, table, by=by, suspend=why or _BY_HAND))


def resume_recluster(
    store: ControlStore, opened: Tables, table: TableRef, *, by: str, writes: ControlStore | None = None
) -> ClusteredTable:
    """The table is reclustered again. A second run changes nothing. `writes`: as of `suspend_recluster`. Raises
    ClusteringKeyMissing.
    """
    _register_unless_gone(store, opened, table, by=by, writes=writes or store)
    return (writes or store).write(lambda c: _moved(c, table, by=by, suspend=None))


def suspend_named(store: ControlStore, name: str, *, why: str, by: str) -> None:
    """As `suspend_recluster`, of a table that is kept clustered, by its name and without its log."""

    def suspend(connection: sa.Connection) -> None:
        tables.suspend_table(connection, _named(connection, name), why=f"{why}, by {by}", by=by)

    store.write(suspend)


def resume_named(store: ControlStore, name: str, *, by: str) -> None:
    """As `resume_recluster`, of a table that is kept clustered, by its name and without its log."""

    def resume(connection: sa.Connection) -> None:
        tables.resume_table(connection, _named(connection, name), by=by)

    store.write(resume)


def list_clustered(store: ControlStore) -> tuple[ClusteredTable, ...]:
    """All tables that are kept clustered, by name."""
    return store.read(tables.live_tables)


def recluster_history(
    store: ControlStore, table: TableRef, *, limit: int = MOST_RECLUSTERINGS
) -> tuple[Recluster, ...]:
    """The reclusterings of the table, newest first; none of a table that is not kept clustered."""

    def look(connection: sa.Connection) -> tuple[Recluster, ...]:
        kept = tables.lookup_table(connection, table.table_id)
        return () if kept is None else reclusterings.history(connection, kept.uid, limit)

    return store.read(look)


def _named(connection: sa.Connection, name: str) -> ClusteredTable:
    """Raises ClusteringKeyMissing, even if two tables have that name."""
    found = [one for one in tables.live_tables(connection) if one.name == name]
    if len(found) != 1:
        raise ClusteringKeyMissing(table=name)
    return found[0]


def _has_key(runtime: Runtime, table: TableRef) -> bool:
    """Whether a job has to take the key away; not from a table that is gone."""
    try:
        return bool(key_of(wherever(runtime.tables)(table).state()))
    except TableNotFound:
        return False


def _register_unless_gone(
    store: ControlStore, opened: Tables, table: TableRef, *, by: str, writes: ControlStore
) -> None:
    """`writes`: the store of a first registration, which changes something."""
    known = store.read(lambda connection: tables.lookup_table(connection, table.table_id)) is not None
    try:
        register_clustered(store if known else writes, opened, table, by=by)
    except TableNotFound:
        if not known:
            raise


def _moved(connection: sa.Connection, table: TableRef, *, by: str, suspend: str | None) -> ClusteredTable:
    """`suspend`: the reason; None: it is resumed."""
    kept = tables.lookup_table(connection, table.table_id)
    if kept is None:
        raise ClusteringKeyMissing(table=table.name)
    if suspend is not None:
        tables.suspend_table(connection, kept, why=f"{suspend}, by {by}", by=by)
    else:
        tables.resume_table(connection, kept, by=by)
    return tables.lookup_table(connection, table.table_id) or kept
