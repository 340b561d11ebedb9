"""Engines and transactions of each database, and the outcome of a transaction whose answer was lost."""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DataError
from sqlalchemy.pool import NullPool, QueuePool

from tidemark.control.urls import SQLITE, shown
from tidemark.errors import StoreRefused, StoreUrlInvalid

__all__ = ["Access", "Bounds", "begin", "engine_of", "one_migration_at_a_time", "transaction_of", "was_committed"]

SQLITE_BUSY_MS = 30_000
OLDEST_POSTGRESQL = 13  # pg_xact_status
MIGRATION_LOCK = 0x7469_6465_6D61_726B  # "tidemark", as PostgreSQL's advisory locks are numbered
POSTGRESQL_BEGIN = "SET LOCAL idle_in_transaction_session_timeout = '15s'; SET LOCAL lock_timeout = '30s'"
POSTGRESQL_READ = "SET LOCAL lock_timeout = '30s'"  # readers wait for locks as long as writers do
ONE_WRITER = "LOCK TABLE tidemark_store IN SHARE ROW EXCLUSIVE MODE"  # no snapshot before it
POSTGRESQL_CONNECT = {
    "application_name": "tidemark",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,  # a dead network is noticed after a minute
    "tcp_user_timeout": 30_000,
}
IN_THE_FUTURE = "22023"
ACCESS = "tidemark_access"
_POOLED: weakref.WeakSet[sa.Engine] = weakref.WeakSet()


@dataclass(frozen=True)
class Bounds:
    """The bounds of reads for a caller that answers others, such as a page: seconds for each step, and connections.

    `connect` is in whole seconds, as drivers need it. A server that has stopped ignores them: see `ControlStore.cut`.
    """

    connections: int
    connect: int = 3
    lock: timedelta = timedelta(seconds=2)
    statement: timedelta = timedelta(seconds=4)


class Access(Enum):
    """The purposes of a transaction."""

    READ = "read"
    WRITE = "write"
    MIGRATION = "migration"  # each statement sees the migrations before it


ON_POSTGRESQL: dict[Access, dict[str, Any]] = {
    Access.READ: {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
    Access.WRITE: {"isolation_level": "SERIALIZABLE"},
    Access.MIGRATION: {"isolation_level": "READ COMMITTED"},
}


def engine_of(url: sa.URL, *, keep_connections: bool, bounds: Bounds | None = None) -> sa.Engine:
    """An engine that has not connected yet. Raises StoreUrlInvalid if the driver is not installed.

    Without `keep_connections` each transaction has a connection of its own, so a task that waits hours for its job
    holds none. With `bounds` connections are kept, and each read ends in time. A forked process connects for itself.
    """
    if url.get_backend_name() == SQLITE:
        busy = SQLITE_BUSY_MS if bounds is None else _milliseconds(bounds.lock)
        engine = sa.create_engine(url, poolclass=NullPool)
        event.listen(engine, "connect", partial(_configure_sqlite, busy=busy))
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    settings = {name: value for name, value in POSTGRESQL_CONNECT.items() if name not in url.query}
    settings["prepare_threshold"] = None  # behind a pooler, a session's statements may run in others
    pool: dict[str, Any] = {"poolclass": NullPool}
    if keep_connections or bounds is not None:
        pool = {"poolclass": QueuePool, "pool_pre_ping": True, "pool_recycle": 300}
    if bounds is not None:
        settings["connect_timeout"] = bounds.connect
        pool |= {"pool_size": bounds.connections, "max_overflow": 0, "pool_timeout": bounds.lock.total_seconds()}
    try:
        engine = sa.create_engine(url, connect_args=settings, **pool)
    except ImportError as error:  # psycopg, or the library below it
        problem = f"its driver cannot be loaded ({error}); pip install 'airflow-provider-tidemark[postgres]'"
        raise StoreUrlInvalid(url=shown(url), problem=problem) from error
    event.listen(engine, "begin", partial(_begin_postgresql, POSTGRESQL_READ if bounds is None else _reading(bounds)))
    if pool["poolclass"] is QueuePool:
        _POOLED.add(engine)
    return engine


def begin(connection: sa.Connection, access: Access) -> sa.RootTransaction:
    """A transaction on an unused connection."""
    options = ON_POSTGRESQL[access] if _is_postgresql(connection) else {}
    return connection.execution_options(**{ACCESS: access, **options}).begin()


def one_migration_at_a_time(connection: sa.Connection) -> None:
    """Waits until no other migration of this database runs. SQLite's writers take turns anyway."""
    if _is_postgresql(connection):
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))


def transaction_of(connection: sa.Connection) -> str | None:
    """The server's id of the open transaction, for a later `was_committed`. None if it has written nothing, and on
    SQLite, whose answers cannot be lost.
    """
    if not _is_postgresql(connection):
        return None
    number = connection.execute(sa.text("SELECT pg_current_xact_id_if_assigned()::text")).scalar_one()
    return None if number is None else str(number)


def was_committed(connection: sa.Connection, transaction: str) -> bool | None:
    """Whether that transaction is stored; None if the server has not decided yet."""
    asked = sa.text("SELECT pg_xact_status(CAST(:number AS xid8))")
    try:
        status = connection.execute(asked, {"number": transaction}).scalar_one()
    except DataError as error:
        if getattr(error.orig, "sqlstate", None) == IN_THE_FUTURE:  # a standby took over without it
            return False
        raise
    return None if status in ("in progress", None) else status == "committed"


def _is_postgresql(connection: sa.Connection) -> bool:
    return connection.dialect.name == "postgresql"


def _reading(bounds: Bounds) -> str:
    lock, statement = _milliseconds(bounds.lock), _milliseconds(bounds.statement)
    return f"SET LOCAL lock_timeout = {lock}; SET LOCAL statement_timeout = {statement}"


def _milliseconds(time: timedelta) -> int:
    return time // timedelta(milliseconds=1)


def _configure_sqlite(dbapi_connection: Any, _record: object, *, busy: int = SQLITE_BUSY_MS) -> None:
    """Sets WAL, so that readers continue during a write, and switches the driver's implicit BEGIN off."""
    dbapi_connection.isolation_level = None
    cursor = dbapi_connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {busy}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    """Begins a transaction. A writer takes the lock at once, so its reads cannot change before it commits."""
    connection.exec_driver_sql("BEGIN" if _access(connection) is Access.READ else "BEGIN IMMEDIATE")


def _begin_postgresql(reading: str, connection: sa.Connection) -> None:
    """Begins a transaction. Writers take turns, as on SQLite: none has conflicts or deadlocks, each sees the one
    before.

    The server ends a writer that stops within its turn, before the next one stops waiting. No wait for a lock is
    endless. `reading`: the settings of a read.
    """
    version = int((connection.dialect.server_version_info or (0,))[0])
    if version < OLDEST_POSTGRESQL:
        problem = f"it is PostgreSQL {version}; upgrade it to {OLDEST_POSTGRESQL} or later"
        raise StoreRefused(url=shown(connection.engine.url), problem=problem)
    access = _access(connection)
    turn = (ONE_WRITER,) if access is Access.WRITE else ()
    connection.exec_driver_sql(reading if access is Access.READ else "; ".join((POSTGRESQL_BEGIN, *turn)))


def _access(connection: sa.Connection) -> Access:
    access: Access = connection.get_execution_options().get(ACCESS, Access.READ)
    return access


def _forget_connections_of_the_parent() -> None:
    """Two processes on one connection read each other's answers. The parent's connections stay open."""
    for engine in list(_POOLED):
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_forget_connections_of_the_parent)
