"""The beginning of slots: they wait until no transaction is open that began before, then know one exact position."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tidemark.errors import SlotBlocked, SourceRefused
from tidemark.errors.tree import TidemarkError
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import LogPosition
from tidemark.replication.planning.positions import parse_lsn, position_of_lsn
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.failures import said, secrets_of, source_of, source_text
from tidemark.replication.sources.postgresql.giving_way import BOUND, Waiter, driven, guards, waiting_for
from tidemark.replication.sources.postgresql.names import literal, quoted
from tidemark.replication.sources.waits import Waits

if TYPE_CHECKING:
    import psycopg2

__all__ = [
    "PLUGIN",
    "WAITS_FOR_TRANSACTIONS",
    "Blocker",
    "Snapshot",
    "blockers",
    "exported_snapshot",
    "require_primary",
    "slot_refusals_named",
    "watched",
]

PLUGIN = "pgoutput"
_BLOCKERS = """
SELECT l.pid, coalesce(a.usename::text, p.owner::text), coalesce(a.datname::text, p.database::text), p.gid, a.state,
       clock_timestamp() - coalesce(a.xact_start, p.prepared), clock_timestamp() - a.query_start, left(a.query, 80)
FROM (SELECT DISTINCT pid, CASE WHEN pid IS NULL THEN transactionid END AS xid FROM pg_locks
      WHERE locktype = 'transactionid' AND granted AND mode = 'ExclusiveLock' AND pid IS DISTINCT FROM %s) l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_prepared_xacts p ON p.transaction = l.xid
WHERE (l.pid IS NOT NULL OR p.gid IS NOT NULL)
  AND coalesce(clock_timestamp() - coalesce(a.xact_start, p.prepared), '1 day') > make_interval(secs => %s)
ORDER BY coalesce(a.xact_start, p.prepared) NULLS FIRST
"""
_MOST_NAMED = 5
_BETWEEN_LOOKS = 2.0  # seconds, at who waits behind a session that waits itself
WAITS_FOR_TRANSACTIONS = "SET lock_timeout = 0"  # a new slot does, in no queue of others; `watched` ends it
_TO_PRIMARY = "Connect to the primary."


@dataclass(frozen=True)
class Snapshot:
    """The database as it is just before `position`: it shows every transaction that commits before it, and no other.

    `name`: for SET TRANSACTION SNAPSHOT. `pid`: the session that keeps it.
    """

    position: LogPosition
    name: str
    pid: int


@dataclass(frozen=True)
class Blocker:
    """An open transaction that has written something, in any database. `gid`: of a prepared one, which has no `pid`.

    A field that the server hides from a user without pg_read_all_stats is None.
    """

    pid: int | None
    user: str | None
    database: str | None
    gid: str | None
    state: str | None
    age: timedelta | None
    in_query_for: timedelta | None
    query: str | None

    @property
    def text(self) -> str:
        """pid, user, database, how long it is open, and what it does."""
        who = f"prepared transaction {self.gid!r}" if self.pid is None else f"process {self.pid}"
        said = [who, f"of {self.user} in {self.database}", f"open for {_seconds(self.age)}"]
        if self.state:
            said.append(f"{self.state}, last statement {_seconds(self.in_query_for)} ago: {self.query}")
        return ", ".join(said)

    @property
    def remedy(self) -> str:
        """The statement that ends it."""
        if self.pid is None:
            return f"ROLLBACK PREPARED {literal(str(self.gid))}; -- in database {self.database}"
        return f"SELECT pg_terminate_backend({self.pid})"


@contextmanager
def exported_snapshot(address: SourceAddress, *, patience: timedelta, bound: timedelta = BOUND) -> Iterator[Snapshot]:
    """A snapshot that other sessions can read under, and the exact position that it belongs to.

    It lives as long as the context, which is to be short. The session that exported it stays open, and idle, and the
    server ends it after a few bounds. It takes one replication slot (temporary, gone with the session) and one WAL
    sender, and holds back VACUUM, while it lives. Nothing of it survives a crash of either side. Raises SlotBlocked,
    SourceRefused, SourceUnreachable.
    """
    import psycopg2

    with connect(driven(address, bound), replication=True) as connection:
        pid = connection.info.backend_pid
        name = f"tidemark_snapshot_{pid}"  # no other living session has this pid
        cursor = connection.cursor()
        settings = [f"SET {setting} = {value}" for setting, value in guards(bound).items()]
        require_primary(connection)
        with slot_refusals_named(address, name), watched(connection, address, name, patience, bound):
            cursor.execute("; ".join((WAITS_FOR_TRANSACTIONS, *settings)))
            cursor.execute(f"CREATE_REPLICATION_SLOT {quoted(name)} TEMPORARY LOGICAL {PLUGIN} EXPORT_SNAPSHOT")
        _, point, snapshot, _ = cursor.fetchone()
        yield Snapshot(position_of_lsn(parse_lsn(point)), snapshot, pid)
        with suppress(psycopg2.Error):  # a session that is gone has taken its slot along
            cursor.execute(
                f"DROP_REPLICATION_SLOT {quoted(name)}"
            )  # the next backfill may need it before the server ends us


def require_primary(connection: psycopg2.extensions.connection) -> None:
    """Raises SourceRefused for a standby: from 16 on it would let a slot wait for ever. Its log and its slots say
    nothing of the primary's.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery()")
        if cursor.fetchone()[0]:
            raise SourceRefused(
                source=source_of(connection), what="a replication slot", problem="it is a standby", remedy=_TO_PRIMARY
            )


def blockers(connection: psycopg2.extensions.connection, *, besides: int, older_than: timedelta) -> tuple[Blocker, ...]:
    """Transactions that a slot made by session `besides` has to wait for, the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(_BLOCKERS, (besides, older_than.total_seconds()))
        return tuple(Blocker(*row) for row in cursor.fetchall())


@contextmanager
def watched(
    connection: psycopg2.extensions.connection,
    address: SourceAddress,
    slot: str,
    patience: timedelta,
    bound: timedelta = BOUND,
) -> Iterator[None]:
    """Cancels the work of `connection` within, if it takes longer than `patience`, or somebody waits for it for
    `bound`. Says who it waited for.

    A timeout of the server's would not do: it has none for commands of the replication protocol. Raises SlotBlocked.
    """
    import psycopg2

    watch = _Watch(connection, address, patience, bound)
    watch.start()
    try:
        yield
        return
    except psycopg2.errors.QueryCanceled:
        if not watch.fired:
            raise
    finally:
        watch.end()
    raise _blocked(slot, watch)


class _Watch(threading.Thread):
    """`found`: who was in the way when time was up; `behind`: who waited for it for the bound, if that was why."""

    def __init__(
        self,
        connection: psycopg2.extensions.connection,
        address: SourceAddress,
        patience: timedelta,
        bound: timedelta,
    ) -> None:
        super().__init__(name="tidemark-slot-watch", daemon=True)
        self.connection, self.address, self.patience, self.bound = connection, address, patience, bound
        self.done = threading.Event()
        self.fired = False
        self.found: tuple[Blocker, ...] = ()
        self.behind: Waiter | None = None

    def run(self) -> None:
        began = time.monotonic()
        if not self._waits_long(began):
            return
        try:
            with connect(self.address) as other:
                pid = self.connection.info.backend_pid
                age = timedelta(seconds=time.monotonic() - began)
                self.found = blockers(other, besides=pid, older_than=min(self.patience, age))
        except TidemarkError:
            self.found = ()  # the cancelling counts; who it was is then not known
        finally:
            if not self.done.is_set():
                self.fired = True
                self.connection.cancel()

    def _waits_long(self, began: float) -> bool:
        """Whether it is to be ended; False: it is done."""
        until, waits = began + self.patience.total_seconds(), Waits(self.bound)
        while (left := until - time.monotonic()) > 0:
            if self.done.wait(min(left, _BETWEEN_LOOKS)):
                return False
            with suppress(TidemarkError):  # it is looked again
                self.behind = waits.late(self._behind())
            if self.behind is not None:
                return True
        return True

    def _behind(self) -> tuple[Waiter, ...]:
        with connect(self.address) as other:
            return waiting_for(other, pids=[self.connection.info.backend_pid])

    def end(self) -> None:
        self.done.set()
        self.join()


def _blocked(slot: str, watch: _Watch) -> SlotBlocked:
    found, seconds = watch.found, watch.patience if watch.behind is None else watch.bound
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    named = "; ".join(one.text for one in found[:_MOST_NAMED]) + more
    behind = "" if watch.behind is None else f" (and it was in the way: {watch.behind.text})"
    return SlotBlocked(
        slot=slot,
        seconds=round(seconds.total_seconds(), 1),
        blockers=(named or "the server does not name them") + behind,
        remedy=found[0].remedy if found else "SELECT * FROM pg_locks WHERE locktype = 'transactionid'",
    )


@contextmanager
def slot_refusals_named(address: SourceAddress, slot: str) -> Iterator[None]:
    """Why the server makes no slot, with the fix. Raises SourceRefused; what is not of slots passes as it is."""
    import psycopg2

    try:
        yield
        return
    except psycopg2.Error as error:
        remedy = _remedy(error, address, slot)
        if remedy is None:
            raise
        failure = SourceRefused(
            source=source_text(address),
            what=f"replication slot {slot}",
            problem=said(error, secrets_of(address)),
            remedy=remedy,
        )
    raise failure


def _remedy(error: psycopg2.Error, address: SourceAddress, slot: str) -> str | None:
    user = quoted(address.user)
    code = error.pgcode
    if code == "53400":
        return (
            "ALTER SYSTEM SET max_replication_slots = 20; -- then restart the server; or drop those that nobody reads:"
            " SELECT slot_name FROM pg_replication_slots WHERE NOT active"
        )
    if code == "42501":
        return f"ALTER ROLE {user} REPLICATION"
    if code == "55000":
        return "ALTER SYSTEM SET wal_level = logical; -- then restart the server"
    if code == "42710":
        return f"SELECT pg_drop_replication_slot({literal(slot)})"
    return None


def _seconds(span: timedelta | None) -> str:
    return f"{span.total_seconds():.0f} s" if span is not None else "an unknown time"
