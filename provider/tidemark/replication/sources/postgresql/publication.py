"""The publication of a replication: an explicit list of tables, ours alone.

A publication must exist before the slot that is read with it, and stay until that slot is dropped. The reason is that
the log is decoded with the publication as it was when a change was made. Never is a table published whose rows the
application could not update any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from tidemark.errors import ObjectNotReplicable, SourceLocked, SourceRefused
from tidemark.replication.model.replication import ObjectName
from tidemark.replication.sources.postgresql.catalog import CatalogTable, discover
from tidemark.replication.sources.postgresql.failures import said, source_of
from tidemark.replication.sources.postgresql.giving_way import LOCK_TIMEOUT, milliseconds
from tidemark.replication.sources.postgresql.names import qualified, quoted

if TYPE_CHECKING:
    import psycopg2

__all__ = [
    "COLUMN_LISTS",
    "GENERATED",
    "LOCK_PATIENCE",
    "PublicationState",
    "PublishedTable",
    "drop_publication",
    "ensure_publication",
    "locked_tables",
    "publication_state",
]

_Published = tuple[ObjectName, tuple[str, ...] | None]

LOCK_PATIENCE = timedelta(seconds=30)
COLUMN_LISTS = 150000  # the version that has them
GENERATED = 180000  # the version that publishes stored generated columns
_OPTIONS = "publish = 'insert, update, delete, truncate', publish_via_partition_root = true"
_STATE = """
SELECT oid::bigint, pg_get_userbyid(pubowner), pg_has_role(pubowner, 'USAGE'), puballtables,
       pubinsert AND pubupdate AND pubdelete AND pubtruncate AND pubviaroot, {generated}
FROM pg_publication WHERE pubname = %s
"""
_TABLES = """
SELECT r.prrelid::bigint, n.nspname, c.relname, {filtered},
       {columns}
FROM pg_publication_rel r JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE r.prpubid = %s::oid ORDER BY n.nspname, c.relname
"""
_LISTED = """
CASE WHEN r.prattrs IS NOT NULL THEN ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = r.prrelid
     AND a.attnum = ANY(r.prattrs::int2[]) ORDER BY a.attnum) END
"""


@dataclass(frozen=True)
class PublishedTable:
    """A table to publish, by OID. `excluded`: columns that the reader drops."""

    oid: int
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublicationState:
    """A publication as it is. `tables`: by OID, name and column list; () for one whose rows are filtered. `plain`: it
    publishes all kinds of changes, and partitions under their root. `wide`: more than the tables of a list.
    `alterable`: its owner is a role of ours. `generated`: with the generated columns that the server could publish.
    """

    exists: bool
    oid: int = 0
    owner: str = ""
    alterable: bool = False
    wide: bool = False
    plain: bool = True
    generated: bool = True
    tables: Mapping[int, _Published] = field(default_factory=dict)


def publication_state(connection: psycopg2.extensions.connection, name: str) -> PublicationState:
    """The state of the publication of that name."""
    new = connection.server_version >= COLUMN_LISTS
    with connection.cursor() as cursor:
        publishes = connection.server_version >= GENERATED
        cursor.execute(_STATE.format(generated="pubgencols = 's'" if publishes else "true"), (name,))
        found = cursor.fetchone()
        if found is None:
            return PublicationState(exists=False)
        oid, owner, alterable, wide, plain, generated = found
        filtered, columns = ("r.prqual IS NOT NULL", _LISTED) if new else ("false", "NULL::text[]")
        cursor.execute(_TABLES.format(filtered=filtered, columns=columns), (oid,))
        rows = cursor.fetchall()
        if new:
            cursor.execute("SELECT count(*) FROM pg_publication_namespace WHERE pnpubid = %s::oid", (oid,))
            wide = wide or cursor.fetchone() != (0,)
    tables = {
        table: (ObjectName(schema, relation), () if filtered else tuple(listed) if listed is not None else None)
        for table, schema, relation, filtered, listed in rows
    }
    return PublicationState(True, oid, owner, alterable, wide, plain, generated, tables)


def ensure_publication(
    connection: psycopg2.extensions.connection,
    name: str,
    tables: Sequence[PublishedTable],
    *,
    patience: timedelta = LOCK_PATIENCE,
    leave: Collection[int] = (),
) -> tuple[str, ...]:
    """Makes the publication, or makes it the one of exactly these tables. Answers the statements that were run, none if
    all was so already. All of them or none take effect.

    All columns are published, also those that are added later, and the reader drops the excluded ones. A list of
    columns does not change, so that values of a new column would be in no event. A list that somebody made is taken
    away. Needs an autocommit connection. It takes locks that others who alter these tables would wait behind. So it is
    tried, for LOCK_TIMEOUT each time, until `patience` is over. Behind autovacuum alone it waits `deadlock_timeout`
    more, as that then ends. The tables to `leave` stay as they are. Raises ObjectNotReplicable before anything is
    published, SourceRefused with the missing right, and SourceLocked where a table stayed locked.
    """
    wanted = _wanted(connection, tables)
    state = publication_state(connection, name)
    _require_ours(connection, name, state)
    statements = _statements(name, state, wanted, _options(connection), leave)
    if statements:
        _run(connection, name, statements, patience, [one for one in (*wanted, *state.tables) if one not in leave])
    return statements


def locked_tables(
    connection: psycopg2.extensions.connection, name: str, tables: Sequence[PublishedTable]
) -> frozenset[int]:
    """The tables that `ensure_publication` would take out or put in, and that somebody has locked, or waits for, at
    this moment.
    """
    wanted = {one.oid for one in tables}
    changed = wanted ^ _whole(publication_state(connection, name))
    with connection.cursor() as cursor:
        cursor.execute(_LOCKED_TABLES, {"tables": list(changed)})
        return frozenset(oid for (oid,) in cursor.fetchall())


def drop_publication(connection: psycopg2.extensions.connection, name: str) -> bool:
    """Whether there was one. Drop the slot first: what it still holds cannot be decoded without the publication."""
    state = publication_state(connection, name)
    if not state.exists:
        return False
    _require_owner(connection, name, state)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP PUBLICATION IF EXISTS {quoted(name)}")
    return True


def _wanted(connection: psycopg2.extensions.connection, tables: Sequence[PublishedTable]) -> dict[int, ObjectName]:
    """The tables by their names of now. Raises ObjectNotReplicable."""
    known = {table.oid: table for table in discover(connection)} if tables else {}
    wanted = {}
    for one in tables:
        table = known.get(one.oid)
        if table is None:
            raise ObjectNotReplicable(
                object=f"The table with OID {one.oid}",
                problem="it was dropped",
                remedy="Take it out of the replication.",
            )
        table.require_replicable()
        _require_keys(table, one.excluded)
        wanted[one.oid] = table.name
    return wanted


def _require_keys(table: CatalogTable, excluded: Sequence[str]) -> None:
    missing = [name for name in table.keys if name in excluded]
    if missing:
        raise ObjectNotReplicable(
            object=table.name.text,
            problem=f"key columns are excluded ({', '.join(missing)}), without which its rows are not known",
            remedy="Include them.",
        )


def _options(connection: psycopg2.extensions.connection) -> str:
    more = ", publish_generated_columns = stored" if connection.server_version >= GENERATED else ""
    return _OPTIONS + more


def _whole(state: PublicationState) -> frozenset[int]:
    """The tables that it publishes with all rows and columns."""
    return frozenset(oid for oid, (_, listed) in state.tables.items() if listed is None)


def _statements(
    name: str, state: PublicationState, wanted: Mapping[int, ObjectName], options: str, leave: Collection[int]
) -> tuple[str, ...]:
    """The statements that make it so. A table with a list or a filter is taken out and put in again, in one
    transaction.
    """
    entries = {oid: f"ONLY {qualified(table)}" for oid, table in wanted.items() if oid not in leave}
    if not state.exists:
        tables = f" FOR TABLE {', '.join(entries.values())}" if entries else ""
        return (f"CREATE PUBLICATION {quoted(name)}{tables} WITH ({options})",)
    alter = f"ALTER PUBLICATION {quoted(name)}"
    stays = (wanted.keys() & _whole(state)).union(leave)
    out = [f"ONLY {qualified(table)}" for oid, (table, _) in state.tables.items() if oid not in stays]
    into = [entry for oid, entry in entries.items() if oid not in stays]
    return (
        *((f"{alter} SET ({options})",) if not (state.plain and state.generated) else ()),
        *((f"{alter} DROP TABLE {', '.join(out)}",) if out else ()),
        *((f"{alter} ADD TABLE {', '.join(into)}",) if into else ()),
    )


def _run(
    connection: psycopg2.extensions.connection,
    name: str,
    statements: Sequence[str],
    patience: timedelta,
    tables: Sequence[int],
) -> None:
    """Again and again, while a lock is not to be had: nothing is held between two attempts."""
    import psycopg2

    tries = Retrying(
        retry=retry_if_exception_type(psycopg2.errors.LockNotAvailable),
        stop=stop_after_delay(patience),
        wait=wait_fixed(_BETWEEN_TRIES),
        reraise=True,
    )
    source, what = source_of(connection), f"publication {name}"
    try:
        tries(_run_once, connection, statements, tables)
        return
    except psycopg2.errors.LockNotAvailable as error:
        failure: SourceRefused = SourceLocked(source=source, what=what, problem=said(error), remedy=_LOCKED)
    except psycopg2.errors.InsufficientPrivilege as error:
        failure = SourceRefused(source=source, what=what, problem=said(error), remedy=_right(connection, tables))
    raise failure


def _run_once(connection: psycopg2.extensions.connection, statements: Sequence[str], tables: Sequence[int]) -> None:
    """In one transaction of the server, on an autocommit connection."""
    with connection.cursor() as cursor:
        cursor.execute(_TIMEOUT, {"tables": list(tables), "timeout": milliseconds(LOCK_TIMEOUT)})
        (timeout,) = cursor.fetchone()
        cursor.execute("BEGIN")
        try:
            cursor.execute(f"SET LOCAL lock_timeout = {timeout}")
            for statement in statements:
                cursor.execute(statement)
            cursor.execute("COMMIT")
        finally:
            if not connection.closed and connection.info.transaction_status != _IDLE:
                cursor.execute("ROLLBACK")


_IDLE = 0  # libpq's PQTRANS_IDLE
_BETWEEN_TRIES = 0.5  # seconds
_LOCKED = "A table is locked: look at pg_locks."
_LOCKED_TABLES = """
SELECT DISTINCT relation::bigint FROM pg_locks
WHERE relation = ANY(%(tables)s::oid[]) AND pid <> pg_backend_pid() AND database = (
    SELECT oid FROM pg_database WHERE datname = current_database()
) AND mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')
"""
_TIMEOUT = """
SELECT %(timeout)s + CASE WHEN bool_and(l.pid IS NOT NULL AND a.usesysid IS NULL)
    THEN (SELECT setting::int FROM pg_settings WHERE name = 'deadlock_timeout') ELSE 0 END
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.relation = ANY(%(tables)s::oid[]) AND l.database = (
    SELECT oid FROM pg_database WHERE datname = current_database()
) AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')
"""
"""In milliseconds. If autovacuum alone is in the way, who waits for as long as `deadlock_timeout` has it end. A
prepared transaction has no process, and does not end.
"""
_NOT_OWNED = """
SELECT format('ALTER TABLE %%I.%%I OWNER TO %%I; -- or: GRANT %%I TO %%I', n.nspname, c.relname, current_user,
              pg_get_userbyid(c.relowner), current_user)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY(%s::oid[]) AND NOT pg_has_role(c.relowner, 'USAGE') ORDER BY n.nspname, c.relname LIMIT 1
"""
_MAY_CREATE = """
SELECT has_database_privilege(current_database(), 'CREATE'),
       format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_user)
"""


def _right(connection: psycopg2.extensions.connection, tables: Sequence[int]) -> str:
    """The statement that grants what was lacking."""
    with connection.cursor() as cursor:
        cursor.execute(_MAY_CREATE)
        granted, grant = cursor.fetchone()
        if not granted:
            return str(grant)
        cursor.execute(_NOT_OWNED, (list(tables),))
        found = cursor.fetchone()
    return found[0] if found is not None else "Grant the missing privileges to the user of the connection."


def _require_ours(connection: psycopg2.extensions.connection, name: str, state: PublicationState) -> None:
    if not state.exists:
        return
    _require_owner(connection, name, state)
    if state.wide:
        raise SourceRefused(
            source=source_of(connection),
            what=f"publication {name}",
            problem="it publishes tables that nobody listed, also such as the application could then not update",
            remedy=f"DROP PUBLICATION {quoted(name)}",
        )


def _require_owner(connection: psycopg2.extensions.connection, name: str, state: PublicationState) -> None:
    if not state.alterable:
        user = quoted(str(connection.get_dsn_parameters().get("user")))
        raise SourceRefused(
            source=source_of(connection),
            what=f"publication {name}",
            problem=f"it belongs to {state.owner}",
            remedy=f"ALTER PUBLICATION {quoted(name)} OWNER TO {user}",
        )
