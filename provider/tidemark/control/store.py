"""The control store: one database, opened by URL, all changes in serialisable transactions."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

from tidemark.control import migrate
from tidemark.control.engines import (
    Access,
    Bounds,
    begin,
    engine_of,
    one_migration_at_a_time,
    transaction_of,
    was_committed,
)
from tidemark.control.failures import Failure, as_store_error, failure_of
from tidemark.control.objects import forget_touched, settle_touched
from tidemark.control.schema import stores
from tidemark.control.sockets import OpenSockets
from tidemark.control.urls import SQLITE, parse_url, shown
from tidemark.errors import StoreBusy, StoreNotMigrated, StoreTooNew, StoreUnreachable

__all__ = ["PATIENCE", "Clock", "ControlStore", "utc_now"]

log = logging.getLogger(__name__)
T = TypeVar("T")
Clock = Callable[[], datetime]

PATIENCE = timedelta(seconds=30)
DUPLICATE_RUNS = 3
RUN_AGAIN = {Failure.CONFLICT, Failure.DUPLICATE, Failure.LOST}


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


class _AnswerLost(Exception):
    """The connection broke during a commit, which may be stored or not."""

    def __init__(self, transaction: str, result: object, error: DBAPIError) -> None:
        super().__init__(transaction)
        self.transaction = transaction
        self.result = result
        self.error = error


class _Undecided(Exception):
    """The server has not decided about a transaction yet."""


class ControlStore:
    """A control store by its SQLAlchemy URL. Opening does no I/O; the first use connects.

    An `embedded` store (by default: SQLite) creates and migrates itself on first use. Any other raises
    `StoreNotMigrated` until its operator has called `migrate()`, and `StoreTooNew` after a newer release did. `read`
    and `write` run one function in one transaction. If others come first or the connection breaks, they run it again,
    as long as `patience` lasts. So the function must change nothing but the database. If the answer of a write was
    lost, the server is asked, and a stored write is not run again. Before a write is stored, the table of objects
    follows those that it touched (`tidemark.control.objects`).

    The constructor raises StoreUrlInvalid; its methods raise StoreUnreachable, StoreRefused and StoreBusy. None shows a
    password. `keep_connections` is for callers that ask often; a task connects for each transaction. `bounds` is for
    callers that answer others: each step of a read ends in time, by StoreBusy or StoreUnreachable. If the server has
    stopped, `cut` frees them. `hide` removes secrets from texts of errors that are stored. `origin`: the setting that
    has the URL, for errors.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock = utc_now,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        embedded: bool | None = None,
        patience: timedelta = PATIENCE,
        keep_connections: bool = False,
        bounds: Bounds | None = None,
        hide: Callable[[str], str] = str,
        origin: str = "",
    ) -> None:
        self.clock = clock
        self.hide = hide
        self.new_id = new_id
        self.patience = patience
        parsed = parse_url(url)
        self.url = shown(parsed)
        self._shown_url = f"{self.url} ({origin})" if origin else self.url
        self.embedded = parsed.get_backend_name() == SQLITE if embedded is None else embedded
        self._engine = engine_of(parsed, keep_connections=keep_connections, bounds=bounds)
        self._sockets = OpenSockets(self._engine)
        self._ready = False
        self._keeps = True
        self._around: tuple[Callable[[sa.Connection], None], Callable[[sa.Connection], None]] | None = None
        self._store_id: str | None = None

    def __repr__(self) -> str:
        return f"ControlStore({self.url!r})"

    @property
    def store_id(self) -> str:
        """The random id of the store, drawn at its creation. Marks in targets have it."""
        if self._store_id is None:
            self._store_id = self.read(lambda c: str(c.execute(sa.select(stores.c.store_id)).scalar_one()))
        return self._store_id

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """The result of `work` on one consistent snapshot."""
        self.require_revision()
        return self._run(work, Access.READ)

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """The result of `work` in one serialisable transaction, which is stored as a whole or not at all. Errors roll
        back.
        """
        self.require_revision()
        return self._run(work if self._around is None else _inside(self._around, work), Access.WRITE)

    def rehearsal(self) -> ControlStore:
        """The same store, which rolls each write back after its answer. An act then returns and raises what it would in
        earnest. Its next transaction does not see its writes.
        """
        rehearsing = copy(self)
        rehearsing._keeps = False
        return rehearsing

    def guarded(self, before: Callable[[sa.Connection], None], after: Callable[[sa.Connection], None]) -> ControlStore:
        """The same store, whose writes run `before` and `after` in their transactions. If one of them raises, nothing
        is stored. A write that runs again after a conflict runs them again, too.
        """
        guarding = copy(self)
        guarding._around = (before, after)
        return guarding

    def revision(self) -> str | None:
        """The migration of the store; None for an empty database."""
        return self._run(migrate.current, Access.READ)

    def require_revision(self) -> None:
        """Nothing, if the store has this release's revision, which is asked once. An embedded store is migrated to it.

        Raises StoreNotMigrated, StoreTooNew.
        """
        if self._ready:
            return
        found = self.revision()
        if not migrate.known(found):
            raise StoreTooNew(url=self._shown_url, found=found, needed=migrate.HEAD)
        if found != migrate.HEAD and not self.embedded:
            raise StoreNotMigrated(url=self._shown_url, found=found, needed=migrate.HEAD)
        if found != migrate.HEAD:
            self.migrate()
        self._ready = True

    def migrate(self) -> None:
        """Migrates the store to this release's revision, and draws its id.

        Idempotent: a second run changes nothing, also at the same time. Raises StoreTooNew, without a change, if the
        store is newer than this release.
        """
        self._run(self._upgrade, Access.MIGRATION)
        self._ready = True

    def close(self) -> None:
        """Closes pooled connections. The store may be used again."""
        self._engine.dispose()

    def cut(self) -> None:
        """Cuts every connection to a server. Callers that wait get StoreUnreachable. The store may be used again."""
        self._sockets.cut()

    def _upgrade(self, connection: sa.Connection) -> None:
        one_migration_at_a_time(connection)
        found = migrate.current(connection)
        if not migrate.known(found):
            raise StoreTooNew(url=self._shown_url, found=found, needed=migrate.HEAD)
        if found != migrate.HEAD:
            migrate.upgrade(connection)
        if connection.execute(sa.select(stores.c.store_id)).first() is None:
            connection.execute(stores.insert().values(store_id=self.new_id(), created_at=self.clock()))

    def _run(self, work: Callable[[sa.Connection], T], access: Access) -> T:
        with self._in_our_words():
            result: T = self._patiently(self._once_for_sure, work, access)
            return result

    def _once_for_sure(self, work: Callable[[sa.Connection], T], access: Access) -> T:
        """The result of one run of `work`. If the answer to its commit was lost, the server is asked."""
        try:
            return self._once(work, access)
        except _AnswerLost as lost:
            if self._was_stored(lost):
                return lost.result  # type: ignore[return-value]
            raise lost.error from None

    def _once(self, work: Callable[[sa.Connection], T], access: Access) -> T:
        with self._engine.connect() as connection:
            with begin(connection, access) as transaction:
                forget_touched(connection)
                result = work(connection)
                if access is Access.WRITE:
                    settle_touched(connection, at=self.clock(), hide=self.hide)
                if access is Access.WRITE and not self._keeps:
                    transaction.rollback()
                    return result
                number = None if access is Access.READ else transaction_of(connection)
                try:
                    transaction.commit()
                except DBAPIError as error:
                    if number is not None and failure_of(error) is Failure.LOST:
                        raise _AnswerLost(number, result, error) from error
                    raise
            return result

    def _was_stored(self, lost: _AnswerLost) -> bool:
        """Whether the commit was stored. Raises StoreUnreachable if it is unknown: then the work must not run again."""
        try:
            return self._patiently(self._ask, lost.transaction)
        except (DBAPIError, _Undecided) as error:
            problem = (
                f"the connection was lost while it was storing ({lost.error.orig}); whether the write was stored "
                "is unknown. Run the task again, which is safe"
            )
            raise StoreUnreachable(url=self._shown_url, problem=problem) from error

    def _ask(self, number: str) -> bool:
        with self._engine.connect() as connection:
            stored = was_committed(connection, number)
        if stored is None:
            raise _Undecided(number)
        return stored

    def _patiently(self, act: Callable[..., T], *arguments: object) -> T:
        retrying = Retrying(
            retry=retry_if_exception(_worth_another_run),
            stop=self._patience_is_over,
            wait=wait_random_exponential(multiplier=0.02, max=1.0),
            before_sleep=self._say_retry,
            reraise=True,
        )
        result: T = retrying(act, *arguments)
        return result

    def _patience_is_over(self, state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, DBAPIError) and failure_of(error) is Failure.DUPLICATE:
            return state.attempt_number >= DUPLICATE_RUNS
        return (state.seconds_since_start or 0.0) >= self.patience.total_seconds()

    def _say_retry(self, state: RetryCallState) -> None:
        """Logs each retry of an unreachable store. Conflicts with other transactions are normal, and not logged."""
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, _Undecided) or (isinstance(error, DBAPIError) and failure_of(error) is Failure.LOST):
            log.warning(
                "The control store %s is unreachable (%s). Retry %s, %.1f s after the first; the last is after %.0f s.",
                self._shown_url,
                self.hide(_first_line(error)),
                state.attempt_number,
                state.seconds_since_start or 0.0,
                self.patience.total_seconds(),
            )

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            ours = as_store_error(error, self._shown_url)
            if ours is None:
                raise
            raise ours from error
        except NoConnectionFree as error:
            raise StoreBusy(url=self._shown_url, problem="all connections to it are in use") from error


def _inside(
    around: tuple[Callable[[sa.Connection], None], Callable[[sa.Connection], None]], work: Callable[[sa.Connection], T]
) -> Callable[[sa.Connection], T]:
    def guarded(connection: sa.Connection) -> T:
        before, after = around
        before(connection)
        result = work(connection)
        after(connection)
        return result

    return guarded


def _first_line(error: BaseException) -> str:
    """The first line of a driver's message. The rest repeats it for each address of the host."""
    said = str(error.orig if isinstance(error, DBAPIError) else "the answer to a commit was lost")
    return next(iter(said.strip().splitlines()), type(error).__name__)


def _worth_another_run(error: BaseException) -> bool:
    return isinstance(error, _Undecided) or (isinstance(error, DBAPIError) and failure_of(error) in RUN_AGAIN)
