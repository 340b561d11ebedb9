"""Change streams and consumer groups among all objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import STALE_AT, ChangeStreamOptions
from tidemark.change_streams.store.group_partitions import lowest_by_state
from tidemark.change_streams.store.schema import change_streams, consumer_groups, group_partitions, watched_tables
from tidemark.control.object_kinds import Advice, Lag, ObjectEntry, ObjectKind, Severity
from tidemark.model.codec import from_json

__all__ = ["CHANGE_STREAM", "CONSUMER_GROUP", "change_stream_lags", "consumer_group_lags"]

_stream, _group, _partition = change_streams.c, consumer_groups.c, group_partitions.c


def _change_streams(connection: sa.Connection, uids: Sequence[str]) -> list[ObjectEntry]:
    watches = sa.exists().where(watched_tables.c.stream_uid == _stream.uid)
    query = sa.select(_stream.uid, _stream.name, (_stream.everything | watches).label("watching"))
    rows = connection.execute(query.where(_stream.uid.in_(uids), _stream.dropped_at.is_(None)))
    return [
        ObjectEntry(row.uid, row.name, "watching", Severity.OK)
        if row.watching
        else ObjectEntry(row.uid, row.name, "suspended", Severity.WAITING)
        for row in rows
    ]


def change_stream_lags(connection: sa.Connection, uids: Sequence[str], now: datetime) -> Mapping[str, Lag]:
    """The time since what was committed then was published."""
    query = sa.select(_stream.uid, _stream.published_until).where(_stream.uid.in_(uids))
    return {row.uid: Lag(max(0.0, (now - row.published_until).total_seconds())) for row in connection.execute(query)}


def _consumer_groups(connection: sa.Connection, uids: Sequence[str]) -> list[ObjectEntry]:
    query = (
        sa.select(_group.uid, _group.name, _group.paused, _stream.name.label("within"))
        .join(change_streams, _stream.uid == _group.stream_uid)
        .where(_group.uid.in_(uids), _group.dropped_at.is_(None))
    )
    failures = _failures(connection, uids)
    return [_entry(row, failures.get(row["uid"])) for row in connection.execute(query).mappings()]


def _entry(row: sa.RowMapping, failed: sa.RowMapping | None) -> ObjectEntry:
    """A group with a failed partition delivers the others; the words count the failed ones, and quote the first. Its
    run is the one whose error is quoted. A paused group waits, also with a failed partition.
    """
    state, severity, said = "running", Severity.OK, None
    met_in: tuple[str, ...] = ()
    if failed is not None:
        number = f"{failed['failed']} partitions" if failed["failed"] > 1 else "a partition"
        said = f"{number} failed, {failed['token']}: {failed['error'] or 'no error is known'}"
        state, severity, met_in = "failing", Severity.FAILED, (failed["failed_task"] or failed["failed_run"],)
    if row["paused"]:
        state, severity = "paused", Severity.WAITING
    return ObjectEntry(row["uid"], row["name"], state, severity, said, row["within"], met_in)


def _failures(connection: sa.Connection, uids: Sequence[str]) -> dict[str, sa.RowMapping]:
    """For each group with failed partitions the first of them, and how many there are: one row a group."""
    failed = _partition.group_uid.in_(uids) & _partition.failed_run.is_not(None)
    counted = (
        sa.select(_partition.group_uid, sa.func.min(_partition.token).label("token"), sa.func.count().label("failed"))
        .where(failed)
        .group_by(_partition.group_uid)
        .subquery()
    )
    first = (_partition.group_uid == counted.c.group_uid) & (_partition.token == counted.c.token)
    runs = (_partition.failed_run, _partition.failed_task)
    columns = (_partition.group_uid, _partition.token, *runs, _partition.error, counted.c.failed)
    query = sa.select(*columns).join(counted, first)
    return {row["group_uid"]: row for row in connection.execute(query).mappings()}


def consumer_group_lags(connection: sa.Connection, uids: Sequence[str], now: datetime) -> Mapping[str, Lag]:
    """The time since each group's low watermark; overdue once the log may soon lose what it has not read."""
    query = (
        sa.select(_group.uid, _stream.published_until, _stream.options, *lowest_by_state(_group.uid))
        .join(change_streams, _stream.uid == _group.stream_uid)
        .where(_group.uid.in_(uids))
    )
    found = {}
    for row in connection.execute(query).all():
        lowest = min((at for at in row[3:] if at is not None), default=row.published_until)
        lag = max(0.0, (now - lowest).total_seconds())
        kept = from_json(ChangeStreamOptions, row.options).retention
        late = lag >= STALE_AT * kept.total_seconds()
        words = f"the log keeps records for {kept}, and it may soon lose some that the group has not read"
        found[row.uid] = Lag(lag, overdue=words if late else None)
    return found


_OF_STREAMS = {
    "suspended": Advice(
        "It watches nothing, so changes of its tables are not captured. Let it watch them again.",
        ("airflow tidemark change-streams resume {name} --on <table>",),
    ),
    "": Advice("Look at the change stream and its tables.", ("airflow tidemark change-streams show {name}",)),
}
_OF_GROUPS = {
    "failing": Advice(
        "Read the log of the failed task and fix the cause. The next wave tries the partition again.",
        ("airflow tidemark consumer-groups show {within} {name}",),
    ),
    "paused": Advice(
        "It gets nothing until it is resumed. The log keeps records for the retention of the change stream only.",
        ("airflow tidemark consumer-groups resume {within} {name}",),
    ),
    "": Advice(
        "Run its DAG more often, or with more tasks at once.",
        ("airflow tidemark consumer-groups show {within} {name}",),
    ),
}

CHANGE_STREAM = ObjectKind(
    "change_stream",
    _change_streams,
    "change_streams.store.objects:change_stream_lags",
    stopped=frozenset({"suspended"}),
    advice=_OF_STREAMS,
    acts="change_streams.worker.acts:CHANGE_STREAM_ACTS",
    ties="change_streams.store.ties:change_stream_ties",
    highs="change_streams.store.highs:change_stream_highs",
    touched="change_streams.store.touched:change_streams_of_runs",
    last_runs="change_streams.store.touched:change_stream_runs",
    stops=frozenset({"suspend"}),
)
CONSUMER_GROUP = ObjectKind(
    "consumer_group",
    _consumer_groups,
    "change_streams.store.objects:consumer_group_lags",
    stopped=frozenset({"paused"}),
    advice=_OF_GROUPS,
    acts="change_streams.worker.acts:GROUP_ACTS",
    ties="change_streams.store.ties:group_ties",
    highs="change_streams.store.highs:group_highs",
    touched="change_streams.store.touched:groups_of_runs",
    last_runs="change_streams.store.touched:group_runs",
    stops=frozenset({"pause"}),
)
