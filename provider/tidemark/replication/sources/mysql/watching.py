"""Sessions of a copy never stop the application: who waits behind them for longer than a bound is let through.

Sessions that give up and try again count as one that waits (`Waits`). A session that waits for a lock of another table
does not count, if the server shows this. Any other wait may be for the copy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from tidemark.errors import TidemarkError
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import ObjectName
from tidemark.replication.sources.mysql.connection import connect, rows_of
from tidemark.replication.sources.waits import Waits

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = ["Watch", "watching"]

_SLOWEST_LOOK = 1.0  # seconds
_WAITING = """
SELECT ID, USER, STATE, LEFT(COALESCE(INFO, ''), 80) FROM information_schema.PROCESSLIST
WHERE (STATE LIKE 'Waiting for%%lock' OR STATE = 'Waiting for table flush') AND COALESCE(INFO, '') NOT LIKE %(pattern)s
{here} ORDER BY ID
"""
_HERE = """
AND ID NOT IN (
    SELECT t.PROCESSLIST_ID FROM performance_schema.metadata_locks l
    JOIN performance_schema.threads t ON t.THREAD_ID = l.OWNER_THREAD_ID
    WHERE l.LOCK_STATUS = 'PENDING' AND t.PROCESSLIST_ID IS NOT NULL AND l.OBJECT_NAME <> ''
      AND (LOWER(l.OBJECT_SCHEMA), LOWER(l.OBJECT_NAME)) <> (LOWER(%(schema)s), LOWER(%(table)s)))
"""
_SHOWS_LOCKS = "SELECT 1 FROM performance_schema.metadata_locks, performance_schema.threads LIMIT 0"
_OURS = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE %s AND ID <> CONNECTION_ID() OR ID = %s"
_NOBODY = -1
_NOT_SHOWN = frozenset({1044, 1109, 1142, 1146})  # no right, no such table


class Watch:
    """Looks at who waits, and drives the session that holds the table, once it is given to it (`keep`)."""

    def __init__(self, address: SourceAddress, table: ObjectName, marker: str, bound: timedelta) -> None:
        self._address, self._table, self._marker = address, table, marker
        self._pause = min(_SLOWEST_LOOK, bound.total_seconds() / 4)
        self._holder: Connection | None = None
        self._holder_id = _NOBODY
        self._ended = threading.Event()
        self._found: str | None = None
        self._waits = Waits(bound)
        self._thread = threading.Thread(target=self._run, name="tidemark-copy-watch", daemon=True)

    def keep(self, holder: Connection) -> None:
        """From now on only the watch uses that connection."""
        self._holder, self._holder_id = holder, holder.thread_id()
        self._thread.start()

    def why(self) -> str | None:
        """Why the sessions were ended; None: they were not."""
        return self._found

    def stop(self) -> None:
        """End it."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        import pymysql

        while not self._ended.is_set():
            try:
                with connect(self._address) as looking:
                    waiting = _WAITING.format(here=_HERE if _shows_locks(looking) else "")
                    while not self._ended.wait(self._pause):
                        self._look(looking, waiting)
            except (TidemarkError, pymysql.err.Error, OSError) as error:
                self._found = self._found or f"nobody could see who waits for it ({error})"
                self._ended.wait(self._pause)

    def _look(self, looking: Connection, waiting: str) -> None:
        if self._found is None and self._holder is not None:
            rows_of(self._holder, "SELECT 1")  # the server ends a session that nobody drives
        late = self._late(looking, waiting)
        if late is not None and self._found is None:
            self._found = late
        if self._found is not None:
            self._end_sessions(looking)

    def _late(self, looking: Connection, waiting: str) -> str | None:
        """A session that waits now, in words, if somebody has waited for the bound of late."""
        asked = {"pattern": self._pattern, "schema": self._table.schema, "table": self._table.table}
        late = self._waits.late(rows_of(looking, waiting, asked))
        if late is None:
            return None
        session, user, state, query = late
        return f"session {session} of {user} waits ({state}): {query}"

    def _end_sessions(self, looking: Connection) -> None:
        import pymysql

        for (session,) in rows_of(looking, _OURS, (self._pattern, self._holder_id)):
            with suppress(pymysql.err.MySQLError), looking.cursor() as cursor:  # it has ended by itself
                cursor.execute(f"KILL {int(session)}")

    @property
    def _pattern(self) -> str:
        return f"%{self._marker}%"


def _shows_locks(looking: Connection) -> bool:
    """Whether the user may see which lock a session waits for. A server that records none shows none."""
    import pymysql

    try:
        rows_of(looking, _SHOWS_LOCKS)
    except pymysql.err.MySQLError as error:
        if error.args[0] not in _NOT_SHOWN:
            raise
        return False
    return True


@contextmanager
def watching(address: SourceAddress, table: ObjectName, marker: str, bound: timedelta) -> Iterator[Watch]:
    """A watch over the sessions that copy `table`, whose queries have `marker`. It ends them if somebody waits for
    `bound`, or if it cannot see who waits.
    """
    watch = Watch(address, table, marker, bound)
    try:
        yield watch
    finally:
        watch.stop()
