"""Sessions of ours never stop the application: who waits behind them for longer than a bound is let through.

PostgreSQL sees no deadlock where one of those who wait is outside of it: a table is held by a session of ours, an
ALTER TABLE waits for it, every query of the application waits behind that, and so does our next session, which the
copy that holds the table waits for. So no session of ours waits in such a queue for longer than LOCK_TIMEOUT, and a
watch ends them all when somebody has waited for one of them for the bound.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from tidemark.databases.postgresql.connection import connect
from tidemark.errors.tree import TidemarkError
from tidemark.model.replication import SourceAddress

if TYPE_CHECKING:
    import psycopg2

__all__ = ["BOUND", "LOCK_TIMEOUT", "Waiter", "Waits", "Watch", "milliseconds", "waiting_for", "watching"]

BOUND = timedelta(seconds=5)
LOCK_TIMEOUT = timedelta(milliseconds=100)  # the longest that a session of ours stands in a queue for a user's table
_SLOWEST_LOOK = 1.0  # seconds
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
        """Who it is, and what it waits for."""
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


class Waits:
    """Who waits since when, from look to look: older servers do not tell."""

    def __init__(self, bound: timedelta) -> None:
        self._bound = bound.total_seconds()
        self._since: dict[Waiter, float] = {}

    def late(self, waiting: Sequence[Waiter]) -> Waiter | None:
        """One that has waited for the bound, as of this look."""
        now = time.monotonic()
        self._since = {one: self._since.get(one, now) for one in waiting}
        return next((one for one, since in self._since.items() if now - since >= self._bound), None)


class Watch(threading.Thread):
    """Looks on while sessions of ours live. `found`: for whom they were ended; None: nobody waited too long.

    Each look is a query of its own connection; a source that does not answer is asked again.
    """

    def __init__(self, address: SourceAddress, *, name: str, bound: timedelta) -> None:
        super().__init__(name="tidemark-giving-way", daemon=True)
        self._address, self.readers = address, name
        self._pause = min(_SLOWEST_LOOK, max(0.05, bound.total_seconds() / 5))
        self._pids: list[int] = []
        self._done = threading.Event()
        self._waits = Waits(bound)
        self.found: str | None = None

    def look_after(self, pid: int) -> None:
        """Have that session be one of those that give way."""
        self._pids.append(pid)

    def run(self) -> None:
        """Until `end`."""
        while not self._done.is_set():
            try:
                with connect(self._address) as connection:
                    while not self._done.wait(self._pause):
                        self._look(connection)
            except TidemarkError:
                self._done.wait(self._pause)

    def end(self) -> None:
        """No look after this."""
        self._done.set()
        self.join()

    def _look(self, connection: psycopg2.extensions.connection) -> None:
        late = self._waits.late(waiting_for(connection, pids=self._pids, name=self.readers))
        if late is not None and self.found is None:
            self.found = late.text
        if self.found is not None:  # also for a session that came meanwhile
            with connection.cursor() as cursor:
                cursor.execute(_END, {"name": self.readers, "pids": self._pids})


@contextmanager
def watching(address: SourceAddress, *, name: str, bound: timedelta) -> Iterator[Watch]:
    """A watch over the sessions of the application `name`, and those that `look_after` is told of."""
    watch = Watch(address, name=name, bound=bound)
    watch.start()
    try:
        yield watch
    finally:
        watch.end()
