"""Counters of a stream's consumptions: each state move by name, one row for each stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control.objects import touch
from tidemark.streams.model.health import StreamHealth
from tidemark.streams.store.schema import stream_health

__all__ = ["HEALTH_COLUMNS", "carry_over", "count_delivery", "count_failure", "health_of", "healths"]

HEALTH_COLUMNS = tuple(field.name for field in fields(StreamHealth))
_of = stream_health.c


def count_delivery(connection: sa.Connection, uid: str, *, rows: int, quarantined: int = 0, empty: bool) -> None:
    """A window of the stream was committed: call it once, in the transaction that moves the offset. It does not fail
    any more.
    """
    _count(
        connection,
        uid,
        consumptions=_of.consumptions + 1,
        empty_windows=_of.empty_windows + int(empty),
        rows_delivered=_of.rows_delivered + rows,
        rows_quarantined=_of.rows_quarantined + quarantined,
        failures_in_row=0,
        failing_since=None,
    )


def count_failure(
    connection: sa.Connection, uid: str, *, at: datetime, error_type: str, error: str, run: str | None
) -> int:
    """An attempt to consume the stream failed; the answer is how many have in a row."""
    _count(
        connection,
        uid,
        failures=_of.failures + 1,
        failures_in_row=_of.failures_in_row + 1,
        failing_since=sa.func.coalesce(_of.failing_since, sa.bindparam("now", at, type_=_of.failing_since.type)),
        last_failed_at=at,
        last_error_type=error_type,
        last_error=error,
        last_failed_run=run,
    )
    return int(connection.execute(sa.select(_of.failures_in_row).where(_of.stream_uid == uid)).scalar_one())


def carry_over(connection: sa.Connection, *, uid: str, to: str) -> None:
    """The stream `uid` continues as `to`, which has no counts yet: they are those of `uid`, and it does not fail."""
    kept = health_of(connection, uid)
    standing = {**vars(kept), "failures_in_row": 0, "failing_since": None}
    connection.execute(stream_health.insert().values(stream_uid=to, **standing))


def health_of(connection: sa.Connection, uid: str) -> StreamHealth:
    """The counts of a stream; zeros where nothing was counted."""
    return healths(connection, (uid,)).get(uid, StreamHealth())


def healths(connection: sa.Connection, uids: Sequence[str] | None = None) -> dict[str, StreamHealth]:
    """The counts of these streams, of all by default, by uid; streams without counts are left out."""
    query = sa.select(stream_health)
    if uids is not None:
        query = query.where(_of.stream_uid.in_(uids))
    return {row["stream_uid"]: _health(row) for row in connection.execute(query).mappings()}


def _count(connection: sa.Connection, uid: str, **values: Any) -> None:
    touch(connection, "stream", (uid,), by=values.get("last_failed_run"))
    change = stream_health.update().where(_of.stream_uid == uid).values(**values)
    if (
        connection.execute(change).rowcount == 0
    ):  # whoever inserts it at the same time: the store runs one of them again
        connection.execute(stream_health.insert().values(stream_uid=uid, **vars(StreamHealth())))
        connection.execute(change)


def _health(row: Mapping[str, Any] | sa.RowMapping) -> StreamHealth:
    return StreamHealth(**{name: row[name] for name in HEALTH_COLUMNS})
