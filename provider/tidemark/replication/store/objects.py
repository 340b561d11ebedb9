"""Replications and their tables among all objects."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.object_kinds import Advice, Lag, ObjectEntry, ObjectKind, Severity
from tidemark.control.sentences import stop_words
from tidemark.replication.model.replication import ObjectState, ReplicationState
from tidemark.replication.planning.lifecycle import Act
from tidemark.replication.store.schema import (
    object_writes,
    replicated_objects,
    replication_errors,
    replication_moves,
    replications,
)

__all__ = ["REPLICATED_TABLE", "REPLICATION", "replication_lags"]

_of, _table, _write, _move = replications.c, replicated_objects.c, object_writes.c, replication_moves.c
_error = replication_errors.c
_STOPPED = (ReplicationState.PAUSED.value, ReplicationState.DRAINING.value)
_FAILED = (ReplicationState.FAILED.value, ReplicationState.FAILED_PERMANENTLY.value)


def _replications(connection: sa.Connection, uids: Sequence[str]) -> list[ObjectEntry]:
    query = sa.select(_of.uid, _of.name, _of.state, _of.error).where(_of.uid.in_(uids), _of.dropped_at.is_(None))
    rows = connection.execute(query).all()
    met = _met_in(connection, [row.uid for row in rows if row.error is not None])
    stops = _stops(connection, [row.uid for row in rows if row.state in _STOPPED])
    return [
        ObjectEntry(
            row.uid,
            row.name,
            row.state,
            _urgency(row.state, row.error),
            row.error,
            met_in=met.get(row.uid, ()),
            stopped_for=stops.get(row.uid),
        )
        for row in rows
    ]


def _met_in(connection: sa.Connection, uids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The run that met the error that each replication shows last. It has others as a whole, which it does not show."""
    if not uids:
        return {}
    columns = (_error.replication_uid, _error.run)
    own = _error.replication_uid.in_(uids) & _error.object_uid.is_(None) & _error.run.is_not(None)
    shown = (_error.replication_uid == _of.uid) & (_error.message == _of.error)
    query = sa.select(*columns).join(replications, shown).where(own).order_by(_error.last_seen_at, _error.id)
    return {row.replication_uid: (row.run,) for row in connection.execute(query)}


def _stops(connection: sa.Connection, uids: Sequence[str]) -> dict[str, str]:
    """The reason of the newest pause of each replication, with the name of a person who did it."""
    if not uids:
        return {}
    pauses = _move.object_uid.is_(None) & _move.act.in_((Act.PAUSE.value, Act.PAUSE_AT_ONCE.value))
    paused = sa.select(sa.func.max(_move.id)).where(_move.replication_uid.in_(uids), pauses)
    newest = paused.group_by(_move.replication_uid)
    query = sa.select(_move.replication_uid, _move.who, _move.why, _move.run).where(_move.id.in_(newest))
    said = {row.replication_uid: stop_words(row.why, None if row.run else row.who) for row in connection.execute(query)}
    return {uid: words for uid, words in said.items() if words is not None}


def _urgency(state: str, error: str | None) -> Severity:
    if state in _FAILED:
        return Severity.FAILED
    if error is not None:
        return Severity.WARNING
    return Severity.OK if state == ReplicationState.RUNNING else Severity.WAITING


def replication_lags(connection: sa.Connection, uids: Sequence[str], now: datetime) -> Mapping[str, Lag]:
    """The time since what was committed then was captured, and the bytes of the source's log behind that capture."""
    query = sa.select(_of.uid, _of.captured_at, _of.lag_bytes).where(_of.uid.in_(uids), _of.captured_at.is_not(None))
    return {
        row.uid: Lag(max(0.0, (now - row.captured_at).total_seconds()), row.lag_bytes, "bytes")
        for row in connection.execute(query)
    }


def _tables(connection: sa.Connection, uids: Sequence[str]) -> list[ObjectEntry]:
    columns = (
        _table.uid,
        _table.replication_uid,
        _table.schema_name,
        _table.table_name,
        _table.state,
        _table.needs_backfill,
    )
    query = (
        sa.select(*columns, _table.problem, _table.selected, _table.notices, _of.name.label("within"))
        .join(replications, _of.uid == _table.replication_uid)
        .where(_table.uid.in_(uids), _of.dropped_at.is_(None))
    )
    rows = connection.execute(query).mappings().all()
    writing = _open_runs(connection, uids)
    moving = _last_runs(connection, {row["replication_uid"] for row in rows})
    return [_entry(row, writing.get(row["uid"]), moving.get(row["replication_uid"])) for row in rows]


def _entry(row: sa.RowMapping, writing: str | None, moving: str | None) -> ObjectEntry:
    """A problem may have been met by the run that writes the table, or by one that moved its replication."""
    severity, problem = _worst(row)
    name = f"{row['schema_name']}.{row['table_name']}"
    runs = tuple(run for run in (writing, moving) if run is not None)
    state = row["state"] if row["selected"] else "left"
    return ObjectEntry(row["uid"], name, state, severity, problem, row["within"], runs if problem is not None else ())


def _worst(row: sa.RowMapping) -> tuple[Severity, str | None]:
    """As the alerts of a replication: one that is not selected any more asks nobody for anything."""
    notices = json.loads(row["notices"]) if row["notices"] else []
    if not row["selected"]:
        return Severity.OK, None
    if row["state"] == ObjectState.UNSUPPORTED:
        return Severity.WARNING, row["problem"]
    if row["state"] == ObjectState.FAILED or row["problem"] not in (None, row["needs_backfill"]):
        return Severity.FAILED, row["problem"] or row["needs_backfill"]
    if row["state"] in (ObjectState.PENDING, ObjectState.ACTIVE):
        return Severity.WAITING, None
    if row["needs_backfill"] is not None:
        return Severity.WARNING, f"it is to be backfilled: {row['needs_backfill']}"
    if notices:
        return Severity.WARNING, "; ".join(notices)
    return Severity.OK if row["state"] == ObjectState.COMPLETED else Severity.WAITING, None


def _open_runs(connection: sa.Connection, uids: Sequence[str]) -> dict[str, str]:
    """The runs that write these tables, or failed to and left their writes open."""
    opened = _write.object_uid.in_(uids) & (_write.state == "open") & _write.run.is_not(None)
    query = sa.select(_write.object_uid, _write.run).where(opened)
    return {row.object_uid: row.run for row in connection.execute(query)}


def _last_runs(connection: sa.Connection, replication_uids: Collection[str]) -> dict[str, str]:
    """The runs that moved these replications themselves, or one of their tables, last."""
    newest = (
        sa.select(sa.func.max(_move.id))
        .where(_move.replication_uid.in_(sorted(replication_uids)), _move.run.is_not(None))
        .group_by(_move.replication_uid)
    )
    query = sa.select(_move.replication_uid, _move.run).where(_move.id.in_(newest))
    return {row.replication_uid: row.run for row in connection.execute(query)}


def _view(name: str, within: str | None) -> Mapping[str, str]:
    return {"replication": within or "", "search": name}


_ERRORS, _RESUME = "airflow tidemark replications errors {name}", "airflow tidemark replications resume {name}"
_SHOW = "airflow tidemark replications show {name}"
_OF_REPLICATIONS = {
    "failed": Advice("Fix the cause of the error. The next run tries again.", (_ERRORS,)),
    "failed_permanently": Advice(
        "Its log can no longer be read. Recover it from a position; earlier changes that were not captured are lost.",
        (_ERRORS, _SHOW),
    ),
    "paused": Advice("It captures nothing, and the source keeps its log. Resume it, or drop it.", (_RESUME,)),
    "draining": Advice("It captures nothing new, and pauses once all is applied. Resume it, or wait.", (_RESUME,)),
    "": Advice("Look at its alerts and its objects.", (_SHOW,)),
}
_OF_TABLES = {
    "failed": Advice(
        "Fix the cause of the error, then request another backfill.",
        (
            "airflow tidemark replications errors {within} --object {name}",
            "airflow tidemark replications backfill {within} {name} --why <reason>",
        ),
    ),
    "unsupported": Advice(
        "The source's table cannot be replicated as it is. Fix it there, or exclude it.",
        ("airflow tidemark replications show {within}",),
    ),
    "": Advice(
        "It needs a backfill, or a person must check a change in the source.",
        (
            "airflow tidemark replications show {within}",
            "airflow tidemark replications backfill {within} {name} --why <reason>",
        ),
    ),
}

REPLICATION = ObjectKind(
    "replication",
    _replications,
    "replication.store.objects:replication_lags",
    view=lambda name, within: {"replication": name},
    stopped=frozenset(_STOPPED),
    advice=_OF_REPLICATIONS,
    acts="replication.worker.acts:REPLICATION_ACTS",
    ties="replication.store.ties:replication_ties",
    highs="replication.store.highs:replication_highs",
    touched="replication.store.touched:replications_of_runs",
    last_runs="replication.store.touched:replication_runs",
)
REPLICATED_TABLE = ObjectKind(
    "replicated_table",
    _tables,
    "replication.worker.status:table_lags",
    view=_view,
    advice=_OF_TABLES,
    acts="replication.worker.acts:REPLICATED_TABLE_ACTS",
    ties="replication.store.ties:table_ties",
    highs="replication.store.highs:table_highs",
    touched="replication.store.touched:tables_of_runs",
    last_runs="replication.store.touched:table_runs",
)
