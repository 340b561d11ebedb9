"""Sessions of ours never stop the application: who waits behind them for longer than a bound is let through.

PostgreSQL sees no deadlock if one of the waiting parties is outside of it. A session of ours holds a table, and an
ALTER TABLE waits for it. Every query of the application waits behind that, and so does our next session. The copy that
holds the table waits for this session. So no session of ours waits in such a queue for longer than LOCK_TIMEOUT. A
watch ends them all if somebody has waited for one of them for the bound, or others have by turns.

The watch may stop itself, with its process or its host. So the server ends the session that holds the table if nobody
has driven it for a few bounds (`guards`). Sessions that read the table end once that one is gone.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from tidemark.errors.tree import TidemarkError
from tidemark.model.source_address import SourceAddress
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.waits import Waits

if TYPE_CHECKING:
    import psycopg2

__all__ = [
    "BOUND",
    "LOCK_TIMEOUT",
    "Waiter",
    "Watch",
    "driven",
    "guards",
    "milliseconds",
    "waiting_for",
    "watching",
]

BOUND = timedelta(seconds=5)
LOCK_TIMEOUT = timedelta(milliseconds=100)
"""The longest that a session of ours stands in a queue for a user's table; behind autovacuum alone, which ends for who
waits, `deadlock_timeout` more.
"""
_SLOWEST_LOOK = 1.0  # seconds
_UNDRIVEN = timedelta(seconds=5)  # that a session which nobody drives may hold a table, at least
_WRITING = timedelta(minutes=1)  # that one may stand still while what it has read is written
_BLIND = "nobody could see for {seconds:g} s who waits for it"
_ENDED = "the session that holds it was ended"
_WAITING = """
WITH ours AS (
    SELECT coalesce(array_agg(pid), '{}') AS pids FROM pg_stat_activity WHERE usename = session_user
       AND (application_name = %(name)s OR pid = ANY(%(pids)s) AND application_name = 'tidemark')
)
SELECT l.pid, l.virtualtransaction, l.mode, coalesce(l.relation::regclass::text, l.locktype), a.usename::text,
       left(a.query, 80)
FROM ours, pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE NOT l.granted AND l.pid <> ALL (ours.pids) AND pg_blocking_pids(l.pid) && ours.pids
ORDER BY l.pid
"""
_END = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = session_user
   AND (application_name = %(name)s OR pid = ANY(%(pids)s) AND application_name = 'tidemark')
"""


class Waiter(NamedTuple):
    """A session that waits for a lock that a session of ours has."""

    pid: int
    transaction: str
    mode: str
    locked: str
    user: str | None
    query: str | None

    @property
    def text(self) -> str:
        """The waiting session, and the lock that it waits for."""
        return f"process {self.pid} of {self.user} waits for {self.mode} on {self.locked}: {self.query}"


def milliseconds(span: timedelta) -> int:
    """As PostgreSQL takes a timeout, and never 0, which would be none."""
    return max(1, round(span.total_seconds() * 1000))


def waiting_for(
    connection: psycopg2.extensions.connection, *, pids: Sequence[int], name: str | None = None
) -> tuple[Waiter, ...]:
    """Others that wait for the sessions of ours with these `pids`, or of the application `name`."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, {"name": name, "pids": list(pids)})
        return tuple(Waiter(*row) for row in cursor.fetchall())


def guards(bound: timedelta, *, reads: bool = False) -> dict[str, str]:
    """Settings by which the server ends a session that holds a user's table. It does so if nobody drives the session,
    or its client is gone, for a few bounds. `reads`: a session that is also idle while the rows it has read are
    written.
    """
    span = max(_few(bound), _WRITING) if reads else _few(bound)
    seconds = max(1, math.ceil(_few(bound).total_seconds() / 3))
    return {
        "idle_in_transaction_session_timeout": str(milliseconds(span)),
        "tcp_keepalives_idle": str(seconds),
        "tcp_keepalives_interval": str(seconds),
        "tcp_keepalives_count": "2",
        "tcp_user_timeout": str(milliseconds(span)),
    }


def driven(address: SourceAddress, bound: timedelta) -> SourceAddress:
    """The same, for connections that find out within a few bounds that nobody answers."""
    seconds = max(1, math.ceil(_few(bound).total_seconds() / 3))
    network = {
        "keepalives_idle": str(seconds),
        "keepalives_interval": str(seconds),
        "keepalives_count": "2",
        "tcp_user_timeout": str(milliseconds(_few(bound))),
    }
    return replace(address, parameters={**network, **address.parameters})


def _few(bound: timedelta) -> timedelta:
    return max(3 * bound, _UNDRIVEN)


class Watch(threading.Thread):
    """Looks on while sessions of ours live. `found`: the waiting session, or the reason, for which they were ended;
    None: nobody waited too long.

    Each look is a query of its own connection, and a source that does not answer is asked again. If no look was
    answered for the bound, the sessions given to it are ended from here.
    """

    def __init__(self, address: SourceAddress, *, name: str, bound: timedelta) -> None:
        super().__init__(name="tidemark-giving-way", daemon=True)
        self._address, self.readers = driven(address, bound), name
        self._pause = min(_SLOWEST_LOOK, max(0.05, bound.total_seconds() / 5))
        self._blind = max(bound, timedelta(seconds=2))
        self._looked = time.monotonic()
        self._pids: list[int] = []
        self._held: list[psycopg2.extensions.connection] = []
        self._kept: psycopg2.extensions.connection | None = None
        self._done = threading.Event()
        self._waits = Waits(bound)
        self.found: str | None = None

    def look_after(self, connection: psycopg2.extensions.connection) -> None:
        """Have that session be one of those that give way."""
        self._pids.append(connection.info.backend_pid)
        self._held.append(connection)

    def keep(self, connection: psycopg2.extensions.connection) -> None:
        """Drive that session, which nobody else uses from now on, so that the server does not end it."""
        self._kept = connection

    def why(self) -> str | None:
        """`found`, even if the session that is kept has ended since the last look."""
        return self.found or (None if self._drives() else _ENDED)

    def run(self) -> None:
        """Until `end`."""
        while not self._done.is_set():
            try:
                with connect(self._address, timeout=self._blind) as connection:
                    connection.cursor().execute(f"SET statement_timeout = {milliseconds(self._blind)}")
                    while not self._done.wait(self._pause):
                        self._look(connection)
            except TidemarkError:
                if time.monotonic() - self._looked > self._blind.total_seconds():
                    self._let_go()
                self._done.wait(self._pause)

    def end(self) -> None:
        """No look after this."""
        self._done.set()
        self.join()

    def _look(self, connection: psycopg2.extensions.connection) -> None:
        late = self._waits.late(waiting_for(connection, pids=self._pids, name=self.readers))
        self._looked = time.monotonic()
        if late is not None and self.found is None:
            self.found = late.text
        if self.found is None and not self._drives():
            self.found = _ENDED
        if self.found is not None:  # also for a session that came meanwhile
            with connection.cursor() as cursor:
                cursor.execute(_END, {"name": self.readers, "pids": self._pids})

    def _drives(self) -> bool:
        """Whether the session that is kept still lives."""
        import psycopg2

        try:
            if self._kept is not None:
                self._kept.cursor().execute("SELECT 1")
            return True
        except psycopg2.Error:
            return False

    def _let_go(self) -> None:
        """Without the server's help, and even while somebody else uses the connection."""
        import psycopg2

        self.found = self.found or _BLIND.format(seconds=self._blind.total_seconds())
        for one in self._held:
            with suppress(psycopg2.Error, OSError), socket.socket(fileno=os.dup(one.fileno())) as other:
                other.shutdown(socket.SHUT_RDWR)


@contextmanager
def watching(address: SourceAddress, *, name: str, bound: timedelta) -> Iterator[Watch]:
    """A watch over the sessions of the application `name`, and those that `look_after` gets."""
    watch = Watch(address, name=name, bound=bound)
    watch.start()
    try:
        yield watch
    finally:
        watch.end()
