"""The control store: one database, opened by URL, all changes in serialisable transactions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from tidemark.control import migrate
from tidemark.control.schema import stores
from tidemark.errors import StoreNotMigrated, StoreUnreachable

__all__ = ["Clock", "ControlStore", "utc_now"]

T = TypeVar("T")
Clock = Callable[[], datetime]

BUSY_TIMEOUT_MS = 30_000
ATTEMPTS = 10
SERIALIZATION_FAILURES = {
    "40001",  # PostgreSQL: serialization_failure
    "40P01",  # deadlock_detected
    "23505",  # unique_violation: what a race for one key may show as; the next run sees the other's row
}
WRITES = "tidemark_writes"


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


class ControlStore:
    """A control store by its SQLAlchemy URL. Opening does no I/O; the first use connects.

    An `embedded` store (by default: SQLite) creates and migrates itself on first use; any other raises
    `StoreNotMigrated` until `migrate()` has been called by its operator. `StoreUnreachable` names the URL with the
    password masked. `read` and `write` run one function in one transaction; `write` is serialisable and runs the
    function again after a serialization failure, so the function must have no effect besides the database.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock = utc_now,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        embedded: bool | None = None,
    ) -> None:
        self.clock = clock
        self.new_id = new_id
        try:
            self._url = sa.make_url(url)
            self._engine = _engine(self._url)
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
            raise StoreUnreachable(url=_masked(url), problem=str(error)) from error
        self.embedded = self._sqlite if embedded is None else embedded
        self._ready = False
        self._store_id: str | None = None

    def __repr__(self) -> str:
        return f"ControlStore({self.url!r})"

    @property
    def url(self) -> str:
        """The URL with its password masked; safe in logs and errors."""
        return self._url.render_as_string(hide_password=True)

    @property
    def _sqlite(self) -> bool:
        return self._url.get_backend_name() == "sqlite"

    @property
    def store_id(self) -> str:
        """The id drawn when the store was created; marks in targets carry it."""
        if self._store_id is None:
            self._store_id = self.read(lambda c: str(c.execute(sa.select(stores.c.store_id)).scalar_one()))
        return self._store_id

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` on one consistent snapshot."""
        self._prepare()
        return self._retried(work, writes=False)

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` in one serialisable transaction: all of it is stored, or nothing. Errors of `work` roll back."""
        self._prepare()
        return self._retried(work, writes=True)

    def revision(self) -> str | None:
        """The migration that the store stands at; None for an empty database."""
        return self._retried(migrate.current, writes=False)

    def migrate(self) -> None:
        """Bring the store to this release's revision and draw its id; a second run changes nothing."""
        self._retried(self._upgrade, writes=True)
        self._ready = True

    def close(self) -> None:
        """Let go of pooled connections; the store may be used again."""
        self._engine.dispose()

    def _upgrade(self, connection: sa.Connection) -> None:
        migrate.upgrade(connection)
        if connection.execute(sa.select(stores.c.store_id)).first() is None:
            connection.execute(stores.insert().values(store_id=self.new_id(), created_at=self.clock()))

    def _prepare(self) -> None:
        if self._ready:
            return
        found = self.revision()
        if found != migrate.HEAD:
            if not self.embedded or not migrate.known(found):
                raise StoreNotMigrated(url=self.url, found=found, needed=migrate.HEAD)
            self.migrate()
        self._ready = True

    def _retried(self, work: Callable[[sa.Connection], T], *, writes: bool) -> T:
        retrying = Retrying(
            retry=retry_if_exception(_worth_retrying),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.02, max=1.0),
            reraise=True,
        )
        with self._reachable():
            result: T = retrying(self._once, work, writes)
            return result

    def _once(self, work: Callable[[sa.Connection], T], writes: bool) -> T:
        with self._engine.connect() as connection:
            connection = connection.execution_options(**{WRITES: writes})
            with connection.begin():
                return work(connection)

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError) or error.connection_invalidated:
                raise StoreUnreachable(url=self.url, problem=str(error.orig)) from error
            raise


def _masked(url: str) -> str:
    """What may be shown of a URL that could not be opened: without its password, or, unparsed, only its scheme."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url.partition("://")[0] + "://…" if "://" in url else "…"


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, isolation_level="SERIALIZABLE", pool_pre_ping=True)
    engine = sa.create_engine(url, poolclass=NullPool)
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _configure_sqlite(dbapi_connection: Any, _record: object) -> None:
    """WAL lets readers go on while one writes; the driver's own implicit BEGIN is switched off."""
    dbapi_connection.isolation_level = None
    cursor = dbapi_connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    """A writer takes the lock at once: what it reads cannot change before it commits."""
    writes = connection.get_execution_options().get(WRITES, True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _worth_retrying(error: BaseException) -> bool:
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return state in SERIALIZATION_FAILURES or "database is locked" in str(error.orig)
