"""Streams among all objects: the state that the store knows of them. The lake alone knows how far a source has
advanced, so `look` asks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.object_kinds import Lag, ObjectEntry, ObjectKind, Severity
from tidemark.streams.planning.names import is_of_a_view
from tidemark.streams.store.schema import stream_health, streams

__all__ = ["STREAM", "stream_lags"]

_of, _health = streams.c, stream_health.c


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


STREAM = ObjectKind(
    "stream",
    _entries,
    "streams.store.objects:stream_lags",
    view=lambda name, within: {"stream": name},
    look="streams.worker.object_states:STREAM_LOOK",
)
