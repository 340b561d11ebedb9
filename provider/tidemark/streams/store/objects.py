"""Streams among all objects: the state that the store knows of them. The lake alone knows how far a source has
advanced, so `look` asks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control.object_kinds import Advice, Finding, Lag, ObjectEntry, ObjectKind, Severity
from tidemark.streams.planning.names import is_of_a_view
from tidemark.streams.store.schema import stream_health, streams, transactions

__all__ = ["LEFT", "STREAM", "left_windows", "stream_lags", "stream_marks"]

_of, _health, _held = streams.c, stream_health.c, transactions.c
LEFT = "locked"


def _entries(connection: sa.Connection, uids: Sequence[str]) -> list[ObjectEntry]:
    query = (
        sa.select(
            _of.uid,
            _of.name,
            _of.initial_rows_pending,
            _health.consumptions,
            _health.failures_in_row,
            _health.last_error_type,
            _health.last_error,
            _health.last_failed_run,
        )
        .select_from(streams.outerjoin(stream_health, _health.stream_uid == _of.uid))
        .where(_of.uid.in_(uids), _of.dropped_at.is_(None))
    )
    return [_entry(row) for row in connection.execute(query).mappings() if not is_of_a_view(row["name"])]


def _entry(row: sa.RowMapping) -> ObjectEntry:
    """The words are those of a stream's state; one whose source was not looked at is `delivering`."""
    if row["failures_in_row"]:
        said = f"{row['last_error_type']}: {row['last_error']}" if row["last_error"] else row["last_error_type"]
        runs = () if row["last_failed_run"] is None else (row["last_failed_run"],)
        return ObjectEntry(row["uid"], row["name"], "failing", Severity.FAILED, said, met_in=runs)
    if row["initial_rows_pending"]:
        return ObjectEntry(row["uid"], row["name"], "behind", Severity.WAITING)
    if not row["consumptions"]:
        return ObjectEntry(row["uid"], row["name"], "undelivered", Severity.WAITING)
    return ObjectEntry(row["uid"], row["name"], "delivering", Severity.OK)


def stream_lags(connection: sa.Connection, uids: Sequence[str], now: datetime) -> Mapping[str, Lag]:
    """The time since each stream was last moved, or was found without changes."""
    query = sa.select(_of.uid, _of.anchor).where(_of.uid.in_(uids))
    return {row.uid: Lag(max(0.0, (now - row.anchor).total_seconds())) for row in connection.execute(query)}


def left_windows(connection: sa.Connection, now: datetime) -> Mapping[str, Finding]:
    """Streams whose open window was left: its lease has run out, and nobody has taken it over."""
    query = (
        sa.select(_of.uid, _of.name, _held.owner, _held.opened_at, _held.lease_until, _held.submitted)
        .join(transactions, _held.id == _of.held_by)
        .where(_of.held_by > "", _of.dropped_at.is_(None), _held.lease_until < now)  # by the index of what is held
    )
    return {
        row.uid: Finding(LEFT, _left(row), since=row.lease_until, run=row.owner) for row in connection.execute(query)
    }


def _left(row: Any) -> str:
    begun = "its job was submitted" if row.submitted else "nothing of it was submitted"
    return f"its window is open since {row.opened_at:%Y-%m-%d %H:%M} UTC, the lease has run out, and {begun}"


def stream_marks(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """The place of each stream, its open window, and whether it reads a view."""
    query = (
        sa.select(
            _of.uid, _of.offset_version, _of.view_query.is_not(None).label("view"), _held.opened_at, _held.submitted
        )
        .select_from(streams.outerjoin(transactions, _held.id == _of.held_by))
        .where(_of.uid.in_(uids))
    )
    return {
        row.uid: {
            "offset": str(row.offset_version),
            "window": "" if row.opened_at is None else row.opened_at.isoformat(),
            "submitted": "yes" if row.submitted else "",
            "view": "yes" if row.view else "",
        }
        for row in connection.execute(query)
    }


_SHOW = "airflow tidemark streams show {name}"
_TRY_AGAIN = Advice(
    "Read the log of the failed task, fix the cause, and run the task again. Its window is kept.", (_SHOW,)
)
_RUN_SOON = Advice("Run its consumer before that time. Its newest transactions name the runs that read it.", (_SHOW,))
_ADVICE = {
    "failing": _TRY_AGAIN,
    "stale": Advice(
        "Its unread changes are lost. Re-base it: the DAG recreate_stale_stream shows the loss, and asks first.",
        ("airflow dags trigger recreate_stale_stream --conf '{{\"stream\": \"'{name}'\"}}'", _SHOW),
    ),
    "unreadable": Advice(
        "The log of its table cannot be read. Fix the access to the lake, or name the table's new path.",
        ("airflow tidemark streams relocate {name} --to <table>", _SHOW),
    ),
    "nearly_stale": _RUN_SOON,
    "may_be_stale": _RUN_SOON,
    LEFT: Advice(
        "The next run on the stream takes the window over. It can be finished now, or freed if no target has a part.",
        ("airflow tidemark streams finish {name}", "airflow tidemark streams release {name}"),
    ),
    "": Advice("Look at the stream and its newest transactions.", (_SHOW,)),
}

STREAM = ObjectKind(
    "stream",
    _entries,
    "streams.store.objects:stream_lags",
    view=lambda name, within: {"stream": name},
    look="streams.worker.object_states:STREAM_LOOK",
    findings=left_windows,
    advice=_ADVICE,
    acts="streams.worker.acts:STREAM_ACTS",
    marks=stream_marks,
    highs="streams.store.highs:stream_highs",
    ties="streams.store.ties:stream_ties",
    touched="streams.store.run_transactions:streams_of_runs",
    last_runs="streams.store.last_runs:stream_runs",
)
