"""A replication's slot: the place in a server's log from which nothing is thrown away before it was captured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from tidemark.errors import SlotAhead, SlotBusy, SlotForeign, SlotLost, SourceRefused, SourceSetBack
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import START, LogPosition
from tidemark.replication.planning.positions import lsn_of, lsn_text, position_of_lsn
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.failures import said, source_of
from tidemark.replication.sources.postgresql.giving_way import BOUND
from tidemark.replication.sources.postgresql.names import literal, quoted
from tidemark.replication.sources.postgresql.snapshots import (
    PLUGIN,
    WAITS_FOR_TRANSACTIONS,
    Snapshot,
    exported_snapshot,
    require_primary,
    slot_refusals_named,
    watched,
)

if TYPE_CHECKING:
    import psycopg2

__all__ = [
    "PLUGIN",
    "OldestChange",
    "SlotStatus",
    "Snapshot",
    "advance_slot",
    "create_slot",
    "creation_of",
    "current_position",
    "drop_slot",
    "emit_heartbeat",
    "existing_slot",
    "exported_snapshot",
    "has_changes",
    "losses_named",
    "oldest_change",
    "require_not_set_back",
    "require_ours",
    "slot_status",
]

_PEEK = """
SELECT substring(data FROM 1 FOR 21)
FROM pg_logical_slot_peek_binary_changes(%(slot)s, %(until)s::pg_lsn, %(most)s,
     'proto_version', '1', 'publication_names', %(publication)s)
"""
_SKIPS_EMPTY = 150000  # from this version on a transaction without published changes leaves nothing
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_BEGIN, _COMMIT = b"B", b"C"
_IN_USE = re.compile(r"PID (\d+)")  # in any language of the server
_TELLS_WHY = 170000  # from this version on the server says why a slot was lost
_HERE = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END"
_STATUS = """
WITH here AS (SELECT {here} AS lsn)
SELECT s.plugin, s.slot_type, s.database, s.temporary, s.active_pid, (s.confirmed_flush_lsn - '0/0')::bigint,
       (s.restart_lsn - '0/0')::bigint, s.wal_status, s.safe_wal_size,
       greatest(here.lsn - s.confirmed_flush_lsn, 0)::bigint, greatest(here.lsn - s.restart_lsn, 0)::bigint,
       {reason}, current_database()
FROM pg_replication_slots s, here WHERE s.slot_name = %s
"""


@dataclass(frozen=True)
class OldestChange:
    """The first transaction behind a place that has published changes: its position, and when it was committed."""

    commit: LogPosition
    at: datetime


@dataclass(frozen=True)
class SlotStatus:
    """A slot as it is. Sizes in bytes: `lag_bytes` of the log behind `confirmed`, `retained_bytes` that the server
    keeps on its disk for it. `safe_wal_size` may still be written before it is in danger (None: no limit).

    `wal_status`: reserved, extended, unreserved (lost soon) or lost. `here`: the database that was asked.
    """

    name: str
    here: str
    exists: bool = True
    plugin: str | None = None
    kind: str = "logical"
    database: str | None = None
    temporary: bool = False
    active_pid: int | None = None
    confirmed: LogPosition | None = None
    restart: LogPosition | None = None
    wal_status: str | None = None
    safe_wal_size: int | None = None
    lag_bytes: int = 0
    retained_bytes: int = 0
    reason: str | None = None

    @property
    def lost(self) -> bool:
        """Whether nothing can be read from it any more."""
        return self.wal_status == "lost" or self.reason is not None


def slot_status(connection: psycopg2.extensions.connection, name: str) -> SlotStatus:
    """The slot of that name, whosever it is."""
    reason = "s.invalidation_reason" if connection.server_version >= _TELLS_WHY else "NULL"
    with connection.cursor() as cursor:
        cursor.execute(_STATUS.format(here=_HERE, reason=reason), (name,))
        found = cursor.fetchone()
        if found is None:
            cursor.execute("SELECT current_database()")
            return SlotStatus(name, cursor.fetchone()[0], exists=False)
    plugin, kind, database, temporary, pid, confirmed, restart, wal, safe, lag, retained, why, here = found
    return SlotStatus(
        name=name,
        here=here,
        plugin=plugin,
        kind=kind,
        database=database,
        temporary=temporary,
        active_pid=pid,
        confirmed=_position(confirmed),
        restart=_position(restart),
        wal_status=wal,
        safe_wal_size=safe,
        lag_bytes=lag or 0,
        retained_bytes=retained or 0,
        reason=why,
    )


def require_ours(status: SlotStatus, *, captured: LogPosition | None = None, idle: bool = True) -> LogPosition:
    """Up to where the slot was moved. Raises SlotLost, SlotForeign, SlotAhead if that is past `captured`, and where it
    is to be `idle` SlotBusy.
    """
    if not status.exists:
        raise SlotLost(slot=status.name, problem="is gone", position=_text(captured))
    foreign = _foreign(status)
    if foreign is not None:
        raise SlotForeign(slot=status.name, problem=foreign, remedy=_drop_text(status))
    if status.confirmed is None and status.active_pid is not None:
        raise SlotBusy(slot=status.name, pid=status.active_pid)  # it is being made
    if status.lost or status.confirmed is None:
        why = f": {status.reason}" if status.reason else " (max_slot_wal_keep_size)"
        problem = f"has lost its log, which the server has removed{why}"
        raise SlotLost(slot=status.name, problem=problem, position=_text(captured or status.confirmed))
    if captured is not None and status.confirmed > captured:
        raise SlotAhead(slot=status.name, found=_text(status.confirmed), expected=_text(captured))
    if idle and status.active_pid is not None:
        raise SlotBusy(slot=status.name, pid=status.active_pid)
    return status.confirmed


def require_not_set_back(connection: psycopg2.extensions.connection, captured: LogPosition) -> None:
    """The log still has all that was captured. To be asked before the slot is moved. A server that was restored from a
    snapshot has the slot as it was then. Its new commits would be taken for captured. A log that has grown past
    `captured` since is not distinguished from one that never went back. Raises SourceSetBack.
    """
    end = _lsn(connection, f"SELECT ({_HERE} - '0/0')::bigint")
    if end < captured:
        raise SourceSetBack(source=source_of(connection), found=_text(end), expected=_text(captured))


def create_slot(address: SourceAddress, name: str, *, patience: timedelta, bound: timedelta = BOUND) -> LogPosition:
    """From now on the log is kept: every transaction that commits at or after the answer can be read from the slot.

    The publication must exist already. An existing slot of ours stays as it is: a second run answers where it was
    moved. The server waits for the transactions that are open; after `patience` it gives up, and if somebody waits for
    it for `bound`. Nothing is left behind then. Raises SlotBlocked with who is in the way, SlotForeign, SlotLost,
    SourceRefused with the fix.
    """
    with connect(address) as connection:
        status = slot_status(connection, name)
        if status.exists:
            return require_ours(status, idle=False)
        require_primary(connection)
        with slot_refusals_named(address, name), watched(connection, address, name, patience, bound):
            cursor = connection.cursor()
            cursor.execute(WAITS_FOR_TRANSACTIONS)
            cursor.execute(
                "SELECT (lsn - '0/0')::bigint FROM pg_create_logical_replication_slot(%s, %s)", (name, PLUGIN)
            )
            return position_of_lsn(cursor.fetchone()[0])


def existing_slot(address: SourceAddress, name: str) -> LogPosition:
    """Up to where a slot was moved that somebody else keeps: every transaction that commits at or after that can be
    read. Raises SourceRefused if there is none or it has lost its log, SlotForeign if it cannot be read here.
    """
    with connect(address) as connection:
        status = slot_status(connection, name)
        if not status.exists or status.lost:
            raise SourceRefused(
                source=source_of(connection),
                what=f"replication slot {name}",
                problem="it has lost its log" if status.exists else "it does not exist",
                remedy=f"Create it, then try again: {creation_of(status)}",
            )
        return require_ours(status, idle=False)


def creation_of(status: SlotStatus) -> str:
    """The statement that recreates the slot."""
    gone = f"SELECT pg_drop_replication_slot({literal(status.name)}); " if status.exists else ""
    return f"{gone}SELECT pg_create_logical_replication_slot({literal(status.name)}, {literal(PLUGIN)})"


def advance_slot(connection: psycopg2.extensions.connection, name: str, to: LogPosition) -> LogPosition:
    """Lets the server throw away what is before `to`; where the slot is then, never past it. A slot that is at `to` or
    past it stays. To be called only when everything before `to` is safe. Raises SlotLost, SlotForeign, SlotBusy,
    SourceRefused for a standby.
    """
    require_primary(connection)
    status = slot_status(connection, name)
    confirmed = require_ours(status)
    if confirmed >= to:
        return confirmed
    with losses_named(connection, name), connection.cursor() as cursor:
        cursor.execute(
            "SELECT (end_lsn - '0/0')::bigint FROM pg_replication_slot_advance(%s, %s::pg_lsn)",
            (name, lsn_text(lsn_of(to))),
        )
        return position_of_lsn(cursor.fetchone()[0])


def drop_slot(connection: psycopg2.extensions.connection, name: str) -> bool:
    """Whether there was one. Raises SlotForeign for one that was not made by a replication, SlotBusy, SourceRefused for
    a standby.
    """
    require_primary(connection)
    status = slot_status(connection, name)
    if not status.exists:
        return False
    foreign = _foreign(status)
    if foreign is not None:
        raise SlotForeign(slot=name, problem=foreign, remedy=_drop_text(status))
    if status.active_pid is not None:
        raise SlotBusy(slot=name, pid=status.active_pid)
    with losses_named(connection, name), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", (name,)
        )
    return True


def current_position(connection: psycopg2.extensions.connection) -> LogPosition:
    """The position up to which the log is on the server's disk, so up to which it can be decoded. Commits that the
    server has confirmed are before it, save those with synchronous_commit = off, for which see `emit_heartbeat`.

    Not pg_current_wal_lsn(): log that is written and not yet on disk is not decoded. So a commit there would be taken
    for captured without having been read. And no statement about what a query sees: only an exported snapshot is.
    """
    return _lsn(connection, "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")


def has_changes(
    connection: psycopg2.extensions.connection,
    slot: str,
    publication: str,
    until: LogPosition,
    *,
    after: LogPosition = START,
) -> bool:
    """Whether a transaction with published changes committed in [after, until). Moves nothing; see `oldest_change`."""
    return oldest_change(connection, slot, publication, until, after=after) is not None


def oldest_change(
    connection: psycopg2.extensions.connection,
    slot: str,
    publication: str,
    until: LogPosition,
    *,
    after: LogPosition = START,
) -> OldestChange | None:
    """The first transaction with published changes that committed in [after, until); None where there is none.

    As a rule the server decodes up to the first one: more only if the slot is behind `after`. Messages, so heartbeats
    too, are no changes. Raises SlotLost, SlotForeign, SlotBusy.
    """
    most: int | None = 1 if connection.server_version >= _SKIPS_EMPTY else None
    while True:
        heads = _heads(connection, slot, publication, until, most)
        for begin, change in pairwise(heads):
            if begin[:1] == _BEGIN and change[:1] != _COMMIT:
                begun = _begun(begin)
                if after <= begun.commit < until:
                    return begun
        if most is None or len(heads) < most:
            return None
        most *= 64


def emit_heartbeat(connection: psycopg2.extensions.connection, text: str) -> LogPosition:
    """Writes a message into the log and answers `current_position` after it. All that was committed before this call,
    in any way, is before that. On a source where nothing is written it gives the slot somewhere to go.
    """
    _lsn(connection, f"SELECT (pg_logical_emit_message(true, 'tidemark', {literal(text)}) - '0/0')::bigint")
    return current_position(connection)


@contextmanager
def losses_named(connection: psycopg2.extensions.connection, name: str) -> Iterator[None]:
    """If the server refuses to work with the slot, it is looked at again: raises SlotLost, SlotForeign, SlotBusy,
    SourceRefused for a standby. A slot that was in use may be free by then.

    An error that is not the slot's fault passes as psycopg2 raised it.
    """
    import psycopg2

    try:
        yield
        return
    except (
        psycopg2.errors.ObjectNotInPrerequisiteState,
        psycopg2.errors.ObjectInUse,
        psycopg2.errors.UndefinedObject,
        psycopg2.errors.UndefinedFile,
    ) as error:
        failure = error
    require_primary(connection)
    status = slot_status(connection, name)
    require_ours(status)
    if isinstance(failure, psycopg2.errors.ObjectInUse):
        raise SlotBusy(slot=name, pid=_reader(failure))
    raise SlotLost(
        slot=name,
        problem=f"cannot be read ({source_of(connection)}): {said(failure)}",
        position=_text(status.confirmed),
    )


def _foreign(status: SlotStatus) -> str | None:
    if status.kind != "logical":
        return f"it is a {status.kind} one"
    if status.plugin != PLUGIN:
        return f"it decodes with {status.plugin}, not with {PLUGIN}"
    if status.database != status.here:
        return f"it is of database {status.database}, not of {status.here}"
    if status.temporary:
        return f"it is a temporary one, of session {status.active_pid}"
    return None


def _drop_text(status: SlotStatus) -> str:
    """A statement for the session that may run it."""
    if status.temporary:
        return f"SELECT pg_terminate_backend({status.active_pid})"
    where = "" if status.database in (None, status.here) else f"; -- in database {status.database}"
    return f"SELECT pg_drop_replication_slot({literal(status.name)}){where}"


def _lsn(connection: psycopg2.extensions.connection, query: str) -> LogPosition:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return position_of_lsn(cursor.fetchone()[0])


def _position(lsn: int | None) -> LogPosition | None:
    return position_of_lsn(lsn) if lsn is not None else None


def _reader(failure: psycopg2.Error) -> int | str:
    found = _IN_USE.search(str(failure))
    return int(found[1]) if found else "unknown"


def _text(position: LogPosition | None) -> str:
    return lsn_text(lsn_of(position)) if position is not None else "the last captured position"


def _heads(
    connection: psycopg2.extensions.connection, slot: str, publication: str, until: LogPosition, most: int | None
) -> list[bytes]:
    """The beginnings of the messages, whole transactions of them, until there are `most` or more."""
    asked = {"slot": slot, "until": lsn_text(lsn_of(until)), "most": most, "publication": quoted(publication)}
    with losses_named(connection, slot), connection.cursor() as cursor:
        cursor.execute(_PEEK, asked)
        return [bytes(data) for (data,) in cursor.fetchall()]


def _begun(message: bytes) -> OldestChange:
    """A Begin message: type, position of the commit record, microseconds since 2000, transaction id."""
    lsn, at = int.from_bytes(message[1:9]), int.from_bytes(message[9:17], signed=True)
    return OldestChange(position_of_lsn(lsn), _EPOCH + timedelta(microseconds=at))
