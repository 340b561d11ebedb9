"""Replications in the store: each state move by name, with its condition, and the history of all moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control.objects import portions, touch
from tidemark.errors import ReplicationNotFound
from tidemark.model.codec import from_json, to_json
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import (
    Actor,
    HeldTable,
    LogPosition,
    Replication,
    ReplicationOptions,
    ReplicationState,
    ReplicationTransition,
    Selection,
)
from tidemark.replication.store import replication_errors
from tidemark.replication.store.schema import replicated_objects, replication_moves, replications

__all__ = [
    "Captured",
    "StoredReplication",
    "advance",
    "begin_capture",
    "begin_drop",
    "by_uid",
    "count",
    "drop",
    "end_capture",
    "find",
    "held_tables",
    "history",
    "insert",
    "keep_transition",
    "live",
    "lookup",
    "place",
    "record_held_tables",
    "set_options",
    "set_selection",
    "transition",
    "with_uids",
]

_of = replications.c


@dataclass(frozen=True)
class StoredReplication:
    """A replication with what only the store knows: the capture that may be under way, and whether it is being dropped.

    `attempt_until`: its job has stopped itself by then. `lag_bytes`: of the source's log behind the last capture when
    it ended.
    """

    replication: Replication
    attempt: str | None
    attempt_until: datetime | None
    lag_bytes: int
    dropping: bool


@dataclass(frozen=True)
class Captured:
    """Up to where the event log is: position, the time by which all that was committed is before it, and batches.
    `gtids`: of all transactions before it; `server`: whose log it is a place of, None if that did not change.
    """

    position: LogPosition
    at: datetime
    batches: int
    lag_bytes: int
    gtids: str = ""
    server: str | None = None


def lookup(connection: sa.Connection, name: str) -> StoredReplication | None:
    """The live replication of that name, in any case of letters, or None: a question, not a failure."""
    row = connection.execute(_live().where(_of.folded_name == name.casefold())).mappings().first()
    return None if row is None else _stored(row)


def find(connection: sa.Connection, name: str) -> StoredReplication:
    """The live replication of that name. Raises ReplicationNotFound."""
    stored = lookup(connection, name)
    if stored is None:
        raise ReplicationNotFound(replication=name, known=_known(connection))
    return stored


def by_uid(connection: sa.Connection, uid: str) -> StoredReplication:
    """The live replication with that uid. Raises ReplicationNotFound; also for one that was dropped."""
    row = connection.execute(_live().where(_of.uid == uid)).mappings().first()
    if row is None:
        raise ReplicationNotFound(replication=uid, known=_known(connection))
    return _stored(row)


def with_uids(connection: sa.Connection, uids: Sequence[str]) -> tuple[StoredReplication, ...]:
    """The live ones among them, in one query for 500."""
    parts = (connection.execute(_live().where(_of.uid.in_(some))).mappings() for some in portions(uids))
    return tuple(_stored(row) for rows in parts for row in rows)


def live(connection: sa.Connection) -> tuple[StoredReplication, ...]:
    """All replications that are not dropped, by name; sorted here, since databases differ in how they sort."""
    found = (_stored(row) for row in connection.execute(_live()).mappings())
    return tuple(sorted(found, key=lambda one: one.replication.name.casefold()))


def count(connection: sa.Connection) -> int:
    """How many are not dropped."""
    query = sa.select(sa.func.count()).select_from(replications).where(_of.dropped_at.is_(None))
    return int(connection.execute(query).scalar_one())


def insert(connection: sa.Connection, replication: Replication, *, by: Actor) -> None:
    """Add a replication; its name must be free."""
    connection.execute(
        replications.insert().values(
            uid=replication.uid,
            name=replication.name,
            folded_name=replication.name.casefold(),
            kind=replication.kind.value,
            source_conn_id=replication.source_conn_id,
            selection=to_json(replication.selection),
            options=to_json(replication.options),
            event_log=replication.event_log,
            slot=replication.slot,
            publication=replication.publication,
            state=replication.state.value,
            created_at=replication.created_at,
            batches=0,
            lag_bytes=0,
        )
    )
    _keep(connection, replication, "create", replication.state, at=replication.created_at, by=by)


def set_selection(
    connection: sa.Connection, replication: Replication, selection: Selection, *, at: datetime, by: Actor
) -> None:
    """The next look at the source takes the tables that it names."""
    connection.execute(replications.update().where(_of.uid == replication.uid).values(selection=to_json(selection)))
    _keep(connection, replication, "select", replication.state, at=at, by=by)


def set_options(
    connection: sa.Connection, replication: Replication, options: ReplicationOptions, *, at: datetime, by: Actor
) -> None:
    """Jobs that begin from now on have them."""
    connection.execute(replications.update().where(_of.uid == replication.uid).values(options=to_json(options)))
    _keep(connection, replication, "alter options", replication.state, at=at, by=by)


def held_tables(connection: sa.Connection, uid: str) -> tuple[HeldTable, ...]:
    """The tables of its source that are excluded, as the last look has left them."""
    text = connection.execute(sa.select(_of.held_tables).where(_of.uid == uid)).scalar()
    return () if text is None else from_json(tuple[HeldTable, ...], text)


def record_held_tables(connection: sa.Connection, uid: str, tables: tuple[HeldTable, ...]) -> None:
    """These are excluded from now on, under any name."""
    if tables != held_tables(connection, uid):
        text = to_json(tables) if tables else None
        connection.execute(replications.update().where(_of.uid == uid).values(held_tables=text))


def transition(
    connection: sa.Connection,
    replication: Replication,
    act: str,
    to: ReplicationState,
    *,
    error: str | None,
    at: datetime,
    by: Actor,
    reason: str | None = None,
) -> bool:
    """To a state, if it still is as it was read, and keep `error` with it; True if it was so. Nothing is kept in the
    history where neither changes. `reason`: `error` was met now, and is kept or counted in the list of errors.
    """
    standing = _standing(replication)
    moved = connection.execute(replications.update().where(standing).values(state=to.value, error=error)).rowcount == 1
    if moved and (to is not replication.state or error != replication.error):
        _keep(connection, replication, act, to, at=at, by=by)
    if moved and error is not None and reason is not None:
        replication_errors.keep(connection, replication.uid, None, reason=reason, message=error, at=at, by=by)
    return moved


def place(
    connection: sa.Connection,
    replication: Replication,
    act: str,
    to: ReplicationState,
    *,
    position: LogPosition,
    system_id: str,
    event_log: str | None,
    at: datetime,
    by: Actor,
) -> bool:
    """Compare-and-set: move to a state and to a position of this cluster, if the replication is as it was read. Returns
    whether it did. With a new `event_log` batches are counted from 0 again. A capture that is under way does not count
    for it any more.
    """
    values: dict[str, Any] = {
        "state": to.value,
        "error": None,
        "captured": position,
        "captured_at": at,
        "system_id": system_id,
        "attempt": None,
        "gtids": None,
    }
    if event_log is not None:
        values |= {"event_log": event_log, "batches": 0}
    moved = connection.execute(replications.update().where(_standing(replication)).values(values)).rowcount == 1
    if moved:
        _keep(connection, replication, act, to, at=at, by=by, position=position)
    return moved


def begin_capture(connection: sa.Connection, uid: str, attempt: str, *, until: datetime) -> None:
    """A capture begins, whose job has stopped itself by `until`. An earlier capture without a stored answer may have
    written events that this one finds.
    """
    connection.execute(replications.update().where(_of.uid == uid).values(attempt=attempt, attempt_until=until))


def end_capture(connection: sa.Connection, uid: str, attempt: str) -> bool:
    """The answer of that capture is being stored; True if no other has begun since."""
    ended = replications.update().where(_of.uid == uid, _of.attempt == attempt).values(attempt=None)
    return connection.execute(ended).rowcount == 1


def advance(connection: sa.Connection, replication: Replication, captured: Captured, *, by: Actor) -> bool:
    """Compare-and-set: record that the event log is captured up to this position, if the replication is as it was read.
    Neither the position nor the number of batches may decrease. Returns whether it did. Moves that brought events are
    kept in the history.
    """
    before = replication.captured
    if before is None or captured.position < before or captured.batches < replication.batches:
        return False
    standing = _standing(replication) & (_of.captured == before) & (_of.batches == replication.batches)
    values = {
        "captured": captured.position,
        "captured_at": captured.at,
        "batches": captured.batches,
        "lag_bytes": captured.lag_bytes,
        "gtids": captured.gtids or None,
        "system_id": captured.server or replication.system_id,
    }
    moved = connection.execute(replications.update().where(standing).values(values)).rowcount == 1
    if moved and captured.batches > replication.batches:
        state = replication.state
        if captured.server not in (None, replication.system_id):
            _keep(connection, replication, "fail over", state, at=captured.at, by=by, position=captured.position)
        _keep(connection, replication, "capture", state, at=captured.at, by=by, position=captured.position)
    return moved


def begin_drop(connection: sa.Connection, replication: Replication, *, at: datetime, by: Actor) -> bool:
    """Nothing begins any more; True if that is news."""
    begun = replications.update().where(_of.uid == replication.uid, _of.dropping_at.is_(None))
    news = connection.execute(begun.values(dropping_at=at)).rowcount == 1
    if news:
        _keep(connection, replication, "begin drop", replication.state, at=at, by=by)
    return news


def drop(connection: sa.Connection, replication: Replication, *, at: datetime, by: Actor) -> None:
    """End a replication; its uid is never used again. Its history stays, its errors do not."""
    connection.execute(replications.update().where(_of.uid == replication.uid).values(dropped_at=at))
    its = sa.select(replicated_objects.c.uid).where(replicated_objects.c.replication_uid == replication.uid)
    touch(connection, "replicated_table", connection.execute(its).scalars())
    replication_errors.drop(connection, replication.uid)
    _keep(connection, replication, "drop", replication.state, at=at, by=by)


def keep_transition(connection: sa.Connection, moved: ReplicationTransition) -> None:
    """Keep a move in the history."""
    connection.execute(
        replication_moves.insert().values(
            replication_uid=moved.replication_uid,
            object_uid=moved.object_uid,
            act=moved.act,
            from_state=moved.before,
            to_state=moved.after,
            position=moved.position,
            moved_at=moved.at,
            who=moved.by.who,
            why=moved.by.why,
            run=moved.by.run,
        )
    )


def history(connection: sa.Connection, uid: str, *, limit: int) -> tuple[ReplicationTransition, ...]:
    """The newest moves of the replication and its objects, newest first."""
    of = replication_moves.c
    query = sa.select(replication_moves).where(of.replication_uid == uid).order_by(of.id.desc()).limit(limit)
    return tuple(_move(row) for row in connection.execute(query).mappings())


def _standing(replication: Replication) -> sa.ColumnElement[bool]:
    return (_of.uid == replication.uid) & (_of.state == replication.state.value) & _of.dropped_at.is_(None)


def _keep(
    connection: sa.Connection,
    replication: Replication,
    act: str,
    to: ReplicationState,
    *,
    at: datetime,
    by: Actor,
    position: LogPosition | None = None,
) -> None:
    before, uid = replication.state.value, replication.uid
    touch(connection, "replication", (uid,), by=by.run or by.who)
    keep_transition(connection, ReplicationTransition(uid, None, act, before, to.value, at, by, position))


def _live() -> sa.Select[tuple[Any, ...]]:
    """Without the excluded tables: they may be many, and few ask for them."""
    columns = (column for column in _of if column is not _of.held_tables)
    return sa.select(*columns).where(_of.dropped_at.is_(None))


def _known(connection: sa.Connection) -> str:
    names = connection.execute(sa.select(_of.name).where(_of.dropped_at.is_(None))).scalars()
    return ", ".join(sorted(names, key=str.casefold)) or "none"


def _stored(row: Mapping[str, Any] | sa.RowMapping) -> StoredReplication:
    replication = Replication(
        uid=row["uid"],
        name=row["name"],
        kind=SourceKind(row["kind"]),
        source_conn_id=row["source_conn_id"],
        selection=from_json(Selection, row["selection"]),
        options=from_json(ReplicationOptions, row["options"]),
        event_log=row["event_log"],
        slot=row["slot"],
        publication=row["publication"],
        state=ReplicationState(row["state"]),
        created_at=row["created_at"],
        captured=row["captured"],
        captured_at=row["captured_at"],
        batches=row["batches"],
        system_id=row["system_id"],
        error=row["error"],
        gtids=row["gtids"],
    )
    return StoredReplication(
        replication, row["attempt"], row["attempt_until"], row["lag_bytes"], row["dropping_at"] is not None
    )


def _move(row: Mapping[str, Any] | sa.RowMapping) -> ReplicationTransition:
    return ReplicationTransition(
        replication_uid=row["replication_uid"],
        object_uid=row["object_uid"],
        act=row["act"],
        before=row["from_state"],
        after=row["to_state"],
        at=row["moved_at"],
        by=Actor(row["who"], row["why"], row["run"]),
        position=row["position"],
    )
